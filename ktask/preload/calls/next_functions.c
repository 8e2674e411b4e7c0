/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The functions that the shim's own stand before: of the next object in the loader's
 * order that has one of that name, as dlsym(RTLD_NEXT) finds them.
 *
 * dlsym() takes 1,400 instructions for each name, and every program would pay for all of
 * them when it starts.  Here all names are looked up at once, in the hash tables of the
 * objects behind this one: 150 instructions a name.  That allocates nothing and takes no
 * lock.  What cannot be found so (in an object with another kind of table, in another
 * namespace of the loader, a function that is chosen when it is looked up) is left to
 * dlsym().
 *
 * The search for a name ends with the first object that has it: with glibc 2.34 or later
 * with the C library at the latest.  Older ones have no execveat(), and pthread_create() is
 * in a library of its own, so the search may go on to the end of the list.  It takes place
 * in the shim's constructors or before.  Until then only a constructor of another library
 * can have loaded more than the program began with, which is never unloaded.
 *
 * Locking: there is no lock.  Threads that look up at the same time store the same
 * addresses; are_found is stored (release) when all of them are there.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>

#include "preload/shim.h"

static const char function_names[SHIM_NR_NEXT][16] = {
	"malloc",	  "calloc",	 "realloc",
	"aligned_alloc",  "memalign",	 "free",
	"posix_memalign", "valloc",	 "pvalloc",
	"pthread_create", "execve",	 "execv",
	"execvp",	  "execvpe",	 "fexecve",
	"execveat",	  "posix_spawn", "posix_spawnp",
	"fork",		  "clone",	 "quick_exit",
	"sbrk",		  "brk",
};

_Static_assert(SHIM_NR_NEXT <= 32, "a mask has a bit for each function");

static _Atomic(void *) next_functions[SHIM_NR_NEXT];
static atomic_bool are_found;

/* The version is not the one that is meant without one. */
#define HIDDEN_VERSION 0x8000

typedef ElfW(Sym) elf_symbol;
typedef ElfW(Addr) elf_word;
typedef ElfW(Dyn) elf_entry;

struct object {
	uintptr_t base;
	const uint32_t *table; /* DT_GNU_HASH */
	const elf_symbol *symbols;
	const uint16_t *versions; /* NULL: none */
	const char *names;
};

/* Return: false if it has another kind of table, or the loader added no base. */
static bool read_object(const struct link_map *map, struct object *object)
{
	*object = (struct object){ .base = map->l_addr };
	for (const elf_entry *entry = map->l_ld; entry->d_tag != DT_NULL;
	     entry++) {
		const void *at = (const void *)entry->d_un.d_ptr;

		if (entry->d_tag == DT_GNU_HASH)
			object->table = at;
		else if (entry->d_tag == DT_SYMTAB)
			object->symbols = at;
		else if (entry->d_tag == DT_STRTAB)
			object->names = at;
		else if (entry->d_tag == DT_VERSYM)
			object->versions = at;
	}
	return object->table && (uintptr_t)object->table >= object->base &&
	       (uintptr_t)object->symbols > object->base &&
	       (uintptr_t)object->names > object->base;
}

static bool is_name(const char *text, const char *name)
{
	while (*text && *text == *name) {
		text++;
		name++;
	}
	return *text == *name;
}

static bool is_meant(const struct object *object, uint32_t index,
		     const char *name)
{
	const elf_symbol *symbol = object->symbols + index;

	return symbol->st_shndx != SHN_UNDEF && symbol->st_value &&
	       !(object->versions &&
		 object->versions[index] & HIDDEN_VERSION) &&
	       is_name(object->names + symbol->st_name, name);
}

/* Return: NULL if it has none of that name. */
static const elf_symbol *find_symbol(const struct object *object, uint32_t hash,
				     const char *name)
{
	const uint32_t nr_buckets = object->table[0];
	const uint32_t first_index = object->table[1];
	const uint32_t nr_words = object->table[2];
	const uint32_t shift = object->table[3];
	const elf_word *words = (const elf_word *)(object->table + 4);
	const uint32_t *buckets = (const uint32_t *)(words + nr_words);
	const uint32_t *chain = buckets + nr_buckets;
	const unsigned bits = 8 * sizeof(*words);
	/* Their number is a power of two. */
	elf_word word = words[hash / bits & (nr_words - 1)];
	uint32_t index;

	if (!(word >> hash % bits & word >> (hash >> shift) % bits & 1))
		return NULL;
	index = buckets[hash % nr_buckets];
	if (index < first_index)
		return NULL;
	/* The last one of a chain has the lowest bit set. */
	for (;; index++) {
		uint32_t other = chain[index - first_index];

		if (!((other ^ hash) >> 1) && is_meant(object, index, name))
			return object->symbols + index;
		if (other & 1)
			return NULL;
	}
}

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/* Return: which of @missing are not in this object. */
static uint32_t search_object(const struct object *object,
			      const uint32_t *hashes, uint32_t missing)
{
	for (int i = 0; i < SHIM_NR_NEXT; i++) {
		const elf_symbol *symbol;

		if (!(missing & 1u << i))
			continue;
		symbol = find_symbol(object, hashes[i], function_names[i]);
		if (!symbol)
			continue;
		missing &= ~(1u << i);
		if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC)
			atomic_store_explicit(
				&next_functions[i],
				(void *)(object->base + symbol->st_value),
				memory_order_relaxed);
	}
	return missing;
}

static void search_objects(void)
{
	const struct link_map *map = _r_debug.r_map;
	uint32_t missing = (uint32_t)((1ull << SHIM_NR_NEXT) - 1);
	uint32_t hashes[SHIM_NR_NEXT];
	struct object object;

	for (int i = 0; i < SHIM_NR_NEXT; i++)
		hashes[i] = hash_name(function_names[i]);
	while (map && map->l_ld != _DYNAMIC)
		map = map->l_next;
	while (map && missing && (map = map->l_next) &&
	       read_object(map, &object))
		missing = search_object(&object, hashes, missing);
}

void *shim_next_function(enum shim_next which)
{
	void *found;

	if (!atomic_load_explicit(&are_found, memory_order_acquire)) {
		search_objects();
		atomic_store_explicit(&are_found, true, memory_order_release);
	}
	found = atomic_load_explicit(&next_functions[which],
				     memory_order_relaxed);
	return found ? found : dlsym(RTLD_NEXT, function_names[which]);
}
