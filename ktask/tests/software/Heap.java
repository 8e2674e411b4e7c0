// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Keeps a third of the heap filled with arrays, replaces them again and again,
// from several threads, and prints what they add up to.
import java.util.Arrays;
import java.util.SplittableRandom;

public class Heap {
	static final int THREADS = 4;

	static long fill(int thread, int kept, int rounds) {
		byte[][] arrays = new byte[kept][];
		SplittableRandom random = new SplittableRandom(thread);
		long sum = 0;

		for (int i = 0; i < rounds; i++) {
			byte[] array = new byte[256 << 10];
			random.nextBytes(array);
			byte[] old = arrays[i % kept];
			if (old != null)
				sum = sum * 31 + Arrays.hashCode(old);
			arrays[i % kept] = array;
		}
		for (byte[] array : arrays)
			sum = sum * 31 + Arrays.hashCode(array);
		return sum;
	}

	public static void main(String[] args) throws Exception {
		int kept = Integer.parseInt(args[0]) * 4 / 3 / THREADS;
		long[] sums = new long[THREADS];
		Thread[] threads = new Thread[THREADS];

		for (int i = 0; i < THREADS; i++) {
			int thread = i;
			threads[i] = new Thread(
				() -> sums[thread] = fill(thread, kept, 3 * kept));
			threads[i].start();
		}
		for (Thread thread : threads)
			thread.join();
		System.out.println(Arrays.toString(sums));
		System.out.println(Runtime.getRuntime().totalMemory());
	}
}
