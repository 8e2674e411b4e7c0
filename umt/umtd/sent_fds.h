/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Descriptors that clients send although nobody asked for them.
 *
 * Whoever reads the packet or closes the connection closes them too.  The last
 * close of a socket with SO_LINGER waits for as long as the sender has chosen.
 */
#ifndef UMT_UMTD_SENT_FDS_H
#define UMT_UMTD_SENT_FDS_H

/* sent_fds_refuse - let the kernel refuse descriptors that are sent to @fd or to a
 * connection accepted there, if it has SO_PASSRIGHTS (Linux 6.16) */
void sent_fds_refuse(int fd);

/*
 * sent_fds_begin, sent_fds_end - around each call that may close what a client sent
 *
 * Between them a signal comes every 20 ms and ends such waits, however many there
 * are.  Do not use them around what a signal must not interrupt, as loading a program:
 * that would begin anew.
 */
void sent_fds_begin(void);
void sent_fds_end(void);

#endif /* UMT_UMTD_SENT_FDS_H */
