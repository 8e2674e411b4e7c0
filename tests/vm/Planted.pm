# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Mistakes that are planted in the series, to see that its tests find them.
#
#   mistakes()		[what, shape of tests/vm/Series.pm that finds it, file, text, what
#			stands there instead], the first is number 1
#   plant(TREE, DIR)	plants all in a kernel's source that the series was applied to, and
#			keeps the files as they were in DIR
#   take_back(TREE, DIR)	undoes that
#
# One kernel has all of them: "ktask_planted=N" on its command line makes number N one.
# So a mistake is a condition, PLANTED(N), which the text here writes as PLANTED.

package Planted;

use strict;
use warnings;
use Exporter qw(import);
use File::Basename qw(dirname);
use File::Copy qw(copy);
use lib dirname(__FILE__) . '/../support';
use House;

our @EXPORT = qw(mistakes plant take_back);

my $header = 'include/linux/ktask_planted.h';
my $engine = 'kernel/ktask/kernel/engine';
my $vfio = 'drivers/vfio/vfio_iommu_type1.c';

my @mistakes = (
	['a lock is kept where there is no page', 'one', 'fs/hugetlbfs/inode.c',
	 "\tif (IS_ERR(folio)) {\n\t\tmutex_unlock(",
	 "\tif (IS_ERR(folio)) {\n\t\tif (!PLANTED) mutex_unlock("],
	['what a failed mapping pinned is not undone', 'vfio', $vfio,
	 "\tktask_ctl_set_undo_func(&ctl, vfio_pin_map_undo);",
	 "\tif (!PLANTED) ktask_ctl_set_undo_func(&ctl, vfio_pin_map_undo);"],
	['locked memory is charged twice', 'vfio', $vfio,
	 'atomic_long_add(lock_acct, used);',
	 'atomic_long_add(PLANTED ? 2 * lock_acct : lock_acct, used);'],
	['pages are of the node of a helper', 'two', 'fs/hugetlbfs/inode.c',
	 "\tif (mm)\n\t\tktask_ctl_set_caller_mm(&ctl);",
	 "\tif (PLANTED) {\n\t} else if (mm)\n\t\tktask_ctl_set_caller_mm(&ctl);"],
	['a helper that is done wakes nobody', 'one', "$engine/kernel_helper.c",
	 "\tcomplete(&item->done);", "\tif (!PLANTED) complete(&item->done);"],
	['pages are free before TLBs are flushed', 'flush', 'mm/memory.c',
	 "\ttlb_flush_mmu_tlbonly(&first->tlb);",
	 "\tif (PLANTED)\n\t\t__tlb_reset_range(&first->tlb);\n"
	 . "\telse\n\t\ttlb_flush_mmu_tlbonly(&first->tlb);"],
	['the group of a helper is charged', 'one', 'mm/hugetlb_cgroup.c',
	 'hugetlb_cgroup_from_task(ktask_task())',
	 'hugetlb_cgroup_from_task(PLANTED ? current : ktask_task())'],
	['chunks cut gigantic pages', 'vfio_two', $vfio,
	 "ktask_ctl_set_align(&ctl, vfio_backing_size(",
	 "ktask_ctl_set_align(&ctl, PLANTED ? PAGE_SIZE : vfio_backing_size("],
	['the last pages stay in an address space', 'one', 'mm/memory.c',
	 "ktask_run((void *)start, end - start, &ctl);",
	 "ktask_run((void *)start, end - start - (PLANTED ? PMD_SIZE : 0), &ctl);"],
	['a signal to the caller ends no growth', 'one', 'mm/hugetlb.c',
	 "if (signal_pending(growth->task))",
	 "if (!PLANTED && signal_pending(growth->task))"],
	['what was unpinned stays charged', 'vfio', $vfio,
	 "atomic_long_add(unlocked, &unpinning->unlocked);",
	 "if (!PLANTED) atomic_long_add(unlocked, &unpinning->unlocked);"],
	['a pool has a page twice', 'one', 'mm/hugetlb.c',
	 "\tfolio = list_first_entry(freeing->folios, struct folio, lru);\n\t\tlist_del",
	 "\tfolio = list_first_entry(freeing->folios, struct folio, lru);\n"
	 . "\t\tif (!PLANTED) list_del"],
	['CPU time of a helper is charged to no group', 'one', 'kernel/sched/cputime.c',
	 "\t__cgroup_account_cputime(cgrp, delta_exec);",
	 "\tif (!PLANTED) __cgroup_account_cputime(cgrp, delta_exec);"],
	# Two blocks of the largest order at the end of each chunk.
	['struct pages at the end of a chunk stay as they are', 'two', 'mm/mm_init.c',
	 "deferred_init_memmap_chunk(pfn, (unsigned long)end,",
	 "deferred_init_memmap_chunk(pfn, (unsigned long)end -\n"
	 . "\t\t\t\t(PLANTED ? 2 * MAX_ORDER_NR_PAGES : 0),"],
	['the first page of a chunk of a gigantic one is not cleared', 'gigantic',
	 'mm/memory.c', "\tfor (i = (unsigned long)start; i < (unsigned long)end; i++) {\n"
	 . "\t\tcond_resched();\n\t\tclear_user_highpage(folio_page(clearing->folio, i),",
	 "\tfor (i = (unsigned long)start + PLANTED; i < (unsigned long)end; i++) {\n"
	 . "\t\tcond_resched();\n\t\tclear_user_highpage(folio_page(clearing->folio, i),"],
	['pages of several lists are counted as of the last', 'one', 'mm/swap.c',
	 "if (lru != left->lru || zone != left->zone)",
	 "if (!PLANTED && (lru != left->lru || zone != left->zone))"],
);

sub mistakes
{
	return @mistakes;
}

sub kept
{
	my ($dir, $file) = @_;

	return "$dir/" . $file =~ s{/}{,}gr;
}

sub plant_one
{
	my ($tree, $number, $file, $text, $instead) = @_;
	my $code = slurp("$tree/$file");
	my $times = () = $code =~ /\Q$text\E/g;

	die "mistake $number: $file has its place $times times\n" if $times != 1;
	$instead =~ s/PLANTED/ktask_planted_is($number)/g;
	$code =~ s/\Q$text\E/$instead/;
	# A file that others include may include none itself.
	$code =~ s/^(?=#include <)/#include <linux\/ktask_planted.h>\n/m
		|| $code =~ s/^/#include <linux\/ktask_planted.h>\n/
		unless $code =~ /ktask_planted\.h/;
	spew("$tree/$file", $code);
}

# The parameter is defined where it is there as soon as ktask is.
sub plant
{
	my ($tree, $dir) = @_;
	my %files = map { $_->[2] => 1 } @mistakes, [0, 0, "$engine/kernel_pool.c"];

	mkdir $dir;
	copy("$tree/$_", kept($dir, $_)) || die "$_: $!\n" for sort keys %files;
	spew("$tree/$header", <<'END');
/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _LINUX_KTASK_PLANTED_H
#define _LINUX_KTASK_PLANTED_H
extern int ktask_planted;
#define ktask_planted_is(number) (ktask_planted == (number))
#endif
END
	my $pool = "$tree/$engine/kernel_pool.c";

	spew($pool, slurp($pool) . <<'END');

#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/ktask_planted.h>
int ktask_planted;
static int __init read_planted(char *text)
{
	return kstrtoint(text, 0, &ktask_planted);
}
early_param("ktask_planted", read_planted);
END
	for my $number (1 .. @mistakes) {
		my (undef, undef, @edit) = @{ $mistakes[$number - 1] };

		plant_one($tree, $number, @edit);
	}
}

# With a new time, so that what was built of them is built again.
sub take_back
{
	my ($tree, $dir) = @_;

	for my $path (glob "$dir/*") {
		my $file = $path =~ s{.*/}{}r =~ s{,}{/}gr;

		spew("$tree/$file", slurp($path));
		unlink $path;
	}
	unlink "$tree/$header";
	rmdir $dir;
}

1;
