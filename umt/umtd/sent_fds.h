/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Descriptors that clients send, which nobody asked for.
 *
 * Whoever reads the packet, or closes the connection, closes them, perhaps as
 * the last: and the last close of a socket with SO_LINGER waits for as long as
 * whoever made the socket likes.
 */
#ifndef UMT_UMTD_SENT_FDS_H
#define UMT_UMTD_SENT_FDS_H

/* sent_fds_refuse - none can be sent to @fd or what is accepted there, where the
 * kernel has SO_PASSRIGHTS (Linux 6.16) */
void sent_fds_refuse(int fd);

/*
 * sent_fds_begin, sent_fds_end - around each call that may close what a client sent
 *
 * It then waits no longer than a moment, however many there are.  Not around
 * what a signal must not interrupt: loading a program is begun anew.
 */
void sent_fds_begin(void);
void sent_fds_end(void);

#endif /* UMT_UMTD_SENT_FDS_H */
