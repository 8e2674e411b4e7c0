// SPDX-License-Identifier: GPL-2.0-only OR MIT

import java.io.IOException;
import java.io.RandomAccessFile;

/**
 * Fills its heap in order, in blocks of 1 MiB, and reads them again.  With "wait" it waits
 * for the daemon a moment behind each block, and longer where it had to make the last one
 * itself, and exits with 2 if it made more than a third of all pages by faults of its own;
 * with 1 if a block is not what was stored.
 *
 * What threads of a JVM allocate moves at several places of the heap, which share the bound
 * on waste: each of them has windows of 2 MiB.
 */
public class TouchHeap {
    private static final int BLOCK = 1 << 20;
    private static final int PAGE = 4096;
    // An array has a head.
    private static final int LENGTH = BLOCK - 16;
    // Of a block that nobody made, some may be there.
    private static final int LEFT_PAGES = 8;
    private static final int STEP_MS = 50;
    private static final int WAIT_MS = 1000;
    private static final int WAITS_MS = 90000;

    private static final byte[] text = new byte[1024];
    private static RandomAccessFile stat, statm;
    private static int waitedMs;

    /**
     * The number behind so many blanks, in what follows the last ")".  Allocates nothing:
     * garbage would lie between the blocks.
     */
    private static long read(RandomAccessFile file, int blanks) throws IOException {
        int length, at = 0;
        long value = 0;

        file.seek(0);
        length = file.read(text);
        for (int i = 0; i < length; i++)
            if (text[i] == ')')
                at = i + 1;
        for (; blanks > 0; at++)
            if (text[at] == ' ')
                blanks--;
        for (; at < length && text[at] >= '0' && text[at] <= '9'; at++)
            value = 10 * value + text[at] - '0';
        return value;
    }

    private static long faults() throws IOException {
        return read(stat, 8);
    }

    private static long resident() throws IOException {
        return read(statm, 1);
    }

    /**
     * Until the daemon has made what it makes, which begins at the far end: how fast that
     * is does not matter.  Now and then it waits for the program itself to go on.
     */
    private static void waitForPages() throws IOException, InterruptedException {
        long first = resident(), before = first, now = first;

        for (int ms = 0; ms < WAIT_MS && waitedMs < WAITS_MS; ms += STEP_MS) {
            Thread.sleep(STEP_MS);
            waitedMs += STEP_MS;
            now = resident();
            if (now == before && now - first >= BLOCK / PAGE)
                return;
            before = now;
        }
    }

    private static byte stored(int block, int at) {
        return (byte) (block * 31 + at / PAGE + 1);
    }

    private static boolean fill(byte[][] blocks, boolean waits) throws Exception {
        for (int i = 0; i < blocks.length; i++) {
            long before = waits ? faults() : 0;

            blocks[i] = new byte[LENGTH];
            for (int at = 0; at < LENGTH; at += PAGE) {
                if (blocks[i][at] != 0)
                    return false;
                blocks[i][at] = stored(i, at);
            }
            if (!waits)
                continue;
            // The daemon of an emulated CPU is slower than its program.
            Thread.sleep(STEP_MS);
            if (faults() - before >= BLOCK / PAGE - LEFT_PAGES)
                waitForPages();
        }
        return true;
    }

    private static boolean isKept(byte[][] blocks) {
        for (int i = 0; i < blocks.length; i++)
            for (int at = 0; at < LENGTH; at += PAGE)
                if (blocks[i][at] != stored(i, at))
                    return false;
        return true;
    }

    public static void main(String[] arguments) throws Exception {
        byte[][] blocks = new byte[Integer.parseInt(arguments[0])][];
        boolean waits = arguments.length > 1;
        long before, made;

        stat = new RandomAccessFile("/proc/self/stat", "r");
        statm = new RandomAccessFile("/proc/self/statm", "r");
        // What Java loads to read them is no part of the heap's faults.
        faults();
        resident();
        Thread.sleep(1);
        before = faults();
        if (!fill(blocks, waits))
            System.exit(1);
        made = faults() - before;
        System.out.println(made + " faults, waited " + waitedMs + " ms");
        if (!isKept(blocks))
            System.exit(1);
        System.exit(waits && made > (long) blocks.length * BLOCK / PAGE / 3 ? 2 : 0);
    }
}
