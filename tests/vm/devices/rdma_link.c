/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One request of the kernel, and its answer: see rdma_link.h.
 */
#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma_link.h"

/* Of attributes: what is not their type. */
#define TYPE_FLAGS (NLA_F_NESTED | NLA_F_NET_BYTEORDER)

void rdma_link_begin(struct rdma_link_request *request, unsigned command)
{
	memset(request, 0, sizeof(*request));
	request->head.nlmsg_len = NLMSG_HDRLEN;
	request->head.nlmsg_type =
		(unsigned short)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command);
	request->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
}

void rdma_link_put(struct rdma_link_request *request, unsigned short type,
		   const void *data, size_t len)
{
	struct nlattr *attribute =
		(void *)((char *)request + request->head.nlmsg_len);

	attribute->nla_type = type;
	attribute->nla_len = (unsigned short)(NLA_HDRLEN + len);
	memcpy((char *)attribute + NLA_HDRLEN, data, len);
	request->head.nlmsg_len += (unsigned)NLA_ALIGN(attribute->nla_len);
}

void rdma_link_each(const void *data, size_t len, rdma_link_func func,
		    void *arg)
{
	const char *pos = data, *end = pos + len;

	while (end - pos >= NLA_HDRLEN) {
		const struct nlattr *attribute = (const void *)pos;

		if (attribute->nla_len < NLA_HDRLEN)
			break;
		func(attribute->nla_type & ~TYPE_FLAGS, pos + NLA_HDRLEN,
		     attribute->nla_len - (size_t)NLA_HDRLEN, arg);
		pos += NLA_ALIGN(attribute->nla_len);
	}
}

/* Return: 1 as long as more is to come; 0 or -errno at the end. */
static int read_answer(int fd, rdma_link_func func, void *arg)
{
	static char answer[16384] __attribute__((aligned(NLMSG_ALIGNTO)));
	ssize_t left = recv(fd, answer, sizeof(answer), 0);
	struct nlmsghdr *head = (void *)answer;

	if (left < 0)
		return -errno;
	for (; NLMSG_OK(head, left); head = NLMSG_NEXT(head, left)) {
		if (head->nlmsg_type == NLMSG_ERROR)
			return *(int *)NLMSG_DATA(head);
		if (func)
			rdma_link_each(NLMSG_DATA(head), NLMSG_PAYLOAD(head, 0),
				       func, arg);
	}
	return 1;
}

int rdma_link_ask(struct rdma_link_request *request, rdma_link_func func,
		  void *arg)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	int result = 1;

	if (fd < 0)
		return -errno;
	if (send(fd, request, request->head.nlmsg_len, 0) < 0)
		result = -errno;
	while (result > 0)
		result = read_answer(fd, func, arg);
	close(fd);
	return result;
}
