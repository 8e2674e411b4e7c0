/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * See clients.h.
 *
 * Behaves badly: ids of other user namespaces that are not mapped into this one all look
 * like one user here, and share what one user may have.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/bpf_program.h"
#include "ebpf/shared.h"
#include "util/monotonic_clock.h"
#include "bound_maps.h"
#include "clients.h"
#include "held_maps.h"
#include "subuid_owner.h"
#include "sent_fds.h"

/*
 * The program is detached once all have paused for so long.  To attach or detach it, the
 * kernel changes its code and interrupts all CPUs.  A client that pauses and resumes all
 * the time must not cause that each time.
 */
#define DETACH_AFTER_NS 1000000000ull

/* A subscriber of the service, by its number in the program. */
struct owned {
	struct client *client; /* NULL: closed */
	uid_t uid; /* who owns it, or did last while its number is not free */
	size_t ring_bytes;
	bool paused;
};

static struct client client_table[CLIENTS_MAX];
static struct owned owned_subscribers[UMT_SUBSCRIBERS];
static unsigned int nr_clients; /* entries that were ever used */
/* When to detach if all have paused; 0: do not. */
static uint64_t detach_ns;

/* ---- who may have what ---- */

static unsigned int clients_of(uid_t uid)
{
	unsigned int i, nr = 0;

	for (i = 0; i < nr_clients; i++)
		nr += client_table[i].fd >= 0 && client_table[i].uid == uid;
	return nr;
}

/* A closed one counts until none of its threads has a record that names it. */
static bool is_held(unsigned int index)
{
	return owned_subscribers[index].client ||
	       program_subscriber_lingers(index);
}

static bool may_open(uid_t uid, size_t ring_bytes)
{
	unsigned int i, nr = 0;
	size_t bytes = ring_bytes;

	for (i = 0; i < UMT_SUBSCRIBERS; i++) {
		if (owned_subscribers[i].uid != uid || !is_held(i))
			continue;
		nr++;
		bytes += owned_subscribers[i].ring_bytes;
	}
	return nr < UMT_BROKER_SUBSCRIBERS_EACH &&
	       bytes <= UMT_BROKER_RINGS_EACH;
}

/* May @uid hold it besides all that it was handed and still holds? */
static bool may_hold_subscriber(uid_t uid, size_t ring_bytes)
{
	size_t each = held_table_bytes(program_nr_cores()) + held_ring_bytes(0);

	return held_maps_allow(uid, HELD_RING, held_ring_bytes(ring_bytes),
			       UMT_BROKER_RINGS_EACH +
				       UMT_BROKER_SUBSCRIBERS_EACH * each);
}

static bool may_hold_doorbell(uid_t uid)
{
	size_t nr = UMT_BROKER_SUBSCRIBERS_EACH * (size_t)program_nr_cores();

	return held_maps_allow(uid, HELD_DOORBELL, held_ring_bytes(1),
			       nr * held_ring_bytes(1));
}

static struct client *take_client(void)
{
	unsigned int i;

	for (i = 0; i < nr_clients; i++)
		if (client_table[i].fd < 0)
			return &client_table[i];
	return nr_clients < CLIENTS_MAX ? &client_table[nr_clients++] : NULL;
}

struct client *client_accept(int fd)
{
	struct ucred who;
	socklen_t size = sizeof(who);
	struct client *client;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size))
		return NULL;
	who.uid = owner_of(who.uid);
	if (who.uid && clients_of(who.uid) >= CLIENTS_EACH)
		return NULL;
	client = take_client();
	if (!client)
		return NULL;
	client->fd = fd;
	client->uid = who.uid;
	return client;
}

/* ---- detaching ---- */

/* False if there is no subscriber: then the program is unloaded soon. */
static bool all_have_paused(void)
{
	bool paused = false;
	unsigned int i;

	for (i = 0; i < UMT_SUBSCRIBERS; i++) {
		if (!owned_subscribers[i].client)
			continue;
		if (!owned_subscribers[i].paused)
			return false;
		paused = true;
	}
	return paused;
}

/* Perhaps all have paused now. */
static void detach_later(void)
{
	detach_ns = monotonic_ns() + DETACH_AFTER_NS;
}

int clients_detach_if_all_paused(void)
{
	uint64_t now = monotonic_ns();

	if (!detach_ns || !all_have_paused())
		return -1;
	if (now < detach_ns)
		return (int)((detach_ns - now) / 1000000) + 1;
	program_watch(false);
	detach_ns = 0;
	return -1;
}

/* ---- the end ---- */

static void close_subscriber(unsigned int index)
{
	program_subscriber_close(index);
	held_maps_release(HELD_TABLE, index);
	owned_subscribers[index].client = NULL;
	detach_later();
}

/* There may be unread descriptors in the connection, which the client sent. */
void client_close(int fd)
{
	sent_fds_begin();
	close(fd);
	sent_fds_end();
}

void client_gone(struct client *client)
{
	unsigned int i;

	for (i = 0; i < UMT_SUBSCRIBERS; i++)
		if (owned_subscribers[i].client == client)
			close_subscriber(i);
	client_close(client->fd);
	client->fd = -1;
}

bool clients_use_program(void)
{
	unsigned int i;

	for (i = 0; i < UMT_SUBSCRIBERS; i++)
		if (owned_subscribers[i].client)
			return true;
	return false;
}

/* ---- questions ---- */

static bool is_ring_size(uint32_t bytes)
{
	return bytes && bytes <= UMT_BROKER_RING_MAX && !(bytes & (bytes - 1));
}

/* Why it cannot be loaded is printed once, not for each request. */
static int load_program(void)
{
	static int said;
	bool there = program_loaded();
	char why[160] = "";
	int error;

	program_will_list();
	error = program_load(why, sizeof(why));
	if (!error && !there) {
		bound_maps_reset();
		held_maps_reset();
	}
	if (error && error != said)
		fprintf(stderr, "umtd: loading the program: %s\n", why);
	said = error;
	return error;
}

/* A map that could not be noted must not be handed out, as it would never be counted. */
static int note_subscriber(const struct client *client,
			   const struct program_subscriber *made,
			   size_t ring_bytes)
{
	bound_maps_add(made->table_fd, client->uid);
	bound_maps_add(made->ring_fd, client->uid);
	if (held_maps_add(made->table_fd, client->uid,
			  held_table_bytes(program_nr_cores()), HELD_TABLE,
			  made->index) &&
	    held_maps_add(made->ring_fd, client->uid,
			  held_ring_bytes(ring_bytes), HELD_RING, made->index))
		return 0;
	close(made->table_fd);
	close(made->ring_fd);
	close_subscriber(made->index);
	return -ENOMEM;
}

/* On success fills @fds and @nr.  The control descriptor and the links stay ours. */
static int open_subscriber(struct client *client, const struct umt_ask *ask,
			   struct umt_answer *answer, int *fds, int *nr)
{
	struct program_subscriber made;
	int error;

	if (ask->flags & ~UMT_BROKER_FLAGS || !is_ring_size(ask->ring_bytes))
		return -EINVAL;
	error = load_program();
	if (error)
		return error;
	if (client->uid && (!may_open(client->uid, ask->ring_bytes) ||
			    !may_hold_subscriber(client->uid, ask->ring_bytes)))
		return -EUSERS;
	error = program_watch(true);
	/* If none is opened. */
	detach_later();
	if (!error)
		error = program_subscriber_open(&made, ask->flags,
						ask->ring_bytes);
	if (error)
		return error;
	owned_subscribers[made.index] =
		(struct owned){ client, client->uid, ask->ring_bytes, false };
	error = note_subscriber(client, &made, ask->ring_bytes);
	if (error)
		return error;
	answer->subscriber = made.index;
	answer->nr_cores = (uint32_t)program_nr_cores();
	memcpy(answer->token, made.token, sizeof(answer->token));
	fds[UMT_FD_CONTROL] = program_control_fd();
	fds[UMT_FD_TABLE] = made.table_fd;
	fds[UMT_FD_RING] = made.ring_fd;
	*nr = UMT_FD_LINKS + program_links(fds + UMT_FD_LINKS);
	return 0;
}

static bool is_own(const struct client *client, const struct umt_ask *ask)
{
	return ask->subscriber < UMT_SUBSCRIBERS &&
	       owned_subscribers[ask->subscriber].client == client;
}

static int pause_subscriber(const struct client *client,
			    const struct umt_ask *ask, int *fds, int *nr)
{
	int error;

	if (!is_own(client, ask))
		return -EINVAL;
	if (ask->op == UMT_BROKER_PAUSE) {
		owned_subscribers[ask->subscriber].paused = true;
		detach_later();
		return 0;
	}
	error = program_watch(true);
	if (error)
		return error;
	owned_subscribers[ask->subscriber].paused = false;
	*nr = program_links(fds);
	return 0;
}

static int make_doorbell(const struct client *client, const struct umt_ask *ask,
			 int *fds, int *nr)
{
	unsigned int key;
	int fd;

	if (!is_own(client, ask) || ask->cpu >= (uint32_t)program_nr_cores())
		return -EINVAL;
	if (client->uid && !may_hold_doorbell(client->uid))
		return -EUSERS;
	fd = program_doorbell(ask->subscriber, (int)ask->cpu, true);
	if (fd < 0)
		return fd;
	bound_maps_add(fd, client->uid);
	key = ask->subscriber * (uint32_t)program_nr_cores() + ask->cpu;
	if (!held_maps_add(fd, client->uid, held_ring_bytes(1), HELD_DOORBELL,
			   key)) {
		close(fd);
		return -ENOMEM;
	}
	fds[0] = fd;
	*nr = 1;
	return 0;
}

static int answer_request(struct client *client, const struct umt_ask *ask,
			  struct umt_answer *answer, int *fds, int *nr)
{
	if (ask->version != UMT_BROKER_VERSION)
		return -EPROTONOSUPPORT;
	switch (ask->op) {
	case UMT_BROKER_OPEN:
		return open_subscriber(client, ask, answer, fds, nr);
	case UMT_BROKER_DOORBELL:
		return make_doorbell(client, ask, fds, nr);
	case UMT_BROKER_PAUSE:
	case UMT_BROKER_RESUME:
		return pause_subscriber(client, ask, fds, nr);
	case UMT_BROKER_CLOSE:
		if (!is_own(client, ask))
			return -EINVAL;
		close_subscriber(ask->subscriber);
		return 0;
	}
	return -EINVAL;
}

/* ---- packets ---- */

static bool send_answer(const struct client *client, struct umt_answer *answer,
			const int *fds, int nr)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(UMT_BROKER_FDS_MAX * sizeof(int))];
	} control = { 0 };
	size_t bytes = (size_t)nr * sizeof(*fds);
	struct iovec piece = { answer, sizeof(*answer) };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1 };

	if (nr) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(bytes);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(&control.header), fds, bytes);
	}
	return sendmsg(client->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
	       sizeof(*answer);
}

static void close_sent(const struct umt_ask *ask, const int *fds, int nr)
{
	if (nr && ask->op == UMT_BROKER_OPEN) {
		close(fds[UMT_FD_TABLE]);
		close(fds[UMT_FD_RING]);
	} else if (nr && ask->op == UMT_BROKER_DOORBELL) {
		close(fds[0]);
	}
}

/*
 * libumt reads each answer before it asks again.  The kernel limits how many
 * descriptors are in flight, and counts those of unread answers against umtd, not
 * against the client.
 */
static bool has_unread(const struct client *client)
{
	int bytes = 0;

	return ioctl(client->fd, SIOCOUTQ, &bytes) || bytes;
}

/* Without a buffer for control data, no descriptor that is sent to us is opened. */
static ssize_t read_ask(const struct client *client, struct umt_ask *ask)
{
	ssize_t bytes;
	int error;

	sent_fds_begin();
	bytes = recv(client->fd, ask, sizeof(*ask), MSG_DONTWAIT | MSG_TRUNC);
	error = errno;
	sent_fds_end();
	errno = error;
	return bytes;
}

bool client_serve(struct client *client)
{
	struct umt_answer answer = { .version = UMT_BROKER_VERSION };
	int fds[UMT_BROKER_FDS_MAX], nr = 0;
	struct umt_ask ask;
	bool sent;
	ssize_t bytes = read_ask(client, &ask);

	if (bytes < 0)
		return errno == EAGAIN || errno == EINTR;
	if (bytes != sizeof(ask) || has_unread(client))
		return false;
	if (client->uid && bound_maps_by(client->uid))
		return false;
	answer.error = answer_request(client, &ask, &answer, fds, &nr);
	sent = send_answer(client, &answer, fds, nr);
	close_sent(&ask, fds, nr);
	return sent;
}
