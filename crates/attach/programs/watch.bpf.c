/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * What runs in the kernel while a program is watched. No value of an attribute but CKA_CLASS and
 * CKA_TOKEN, no PIN and no data leaves it: handles, lengths, numbers of mechanisms, return codes and
 * times only, and digests of templates and of handles under a key of the run's own.
 *
 * `make bpf` builds watch.bpf.o from it. The layouts below are those of src/layout.rs.
 */

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

/* include/uapi/linux/bpf.h */
enum {
	MAP_HASH = 1,
	MAP_ARRAY = 2,
	MAP_PERCPU_HASH = 5,
	MAP_PERCPU_ARRAY = 6,
	MAP_RINGBUF = 27,
};
#define NO_PREALLOC 1
#define NO_WAKEUP 1
#define NOEXIST 1

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*map_delete)(void *map, const void *key) = (void *)3;
static u64 (*now)(void) = (void *)5;
static u64 (*pid_tgid)(void) = (void *)14;
static long (*read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static void *(*ring_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*ring_submit)(void *data, u64 flags) = (void *)132;
static u64 (*attach_cookie)(void *ctx) = (void *)174;

extern u64 *bpf_session_cookie(void);
extern _Bool bpf_session_is_return(void);

/* arch/x86/include/asm/ptrace.h */
struct registers {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags,
		sp, ss;
};

struct map {
	u32 type, key_bytes, value_bytes, entries, flags;
};

#define DEPTH 8
/* A power of two above the most arguments of a function that is watched. */
#define ARGUMENTS 16
#define SUB_BITS 5
#define OCTAVES 40
#define BUCKETS (OCTAVES << SUB_BITS)

struct settings {
	/* Set last and cleared first. */
	u32 enabled;
	/* Children of watched processes are watched too. */
	u32 children;
	/* Waits for input from outside are told too. */
	u32 inputs;
	/* Where the process's id is in the kernel's task_struct. */
	u32 tgid_at;
	u32 pid_at;
};

struct call_key {
	u32 process, thread, function, pad;
	u64 result;
};

struct call_tally {
	u64 count, total_ns;
};

/* Calls whose times differ by less than 1/32, and the sum of their times. */
struct bucket {
	u64 count, total_ns;
};

struct function_times {
	struct bucket bucket[BUCKETS];
};

/* An open call. */
struct frame {
	u64 start, stack, handle, detail, caller, gives, objects, operand;
	u32 function, how, flags, pad;
	/* From 1. */
	u64 argument[ARGUMENTS];
};

struct thread {
	u32 depth, waits_in;
	u64 wait_start;
	struct frame frame[DEPTH];
};

enum { RECORD_CALL = 1, RECORD_WAIT, RECORD_ENTRY, RECORD_FORK, RECORD_EXEC, RECORD_EXIT };

struct record {
	/* Above the kind its flags. */
	u32 kind, function;
	u32 process, thread;
	u64 start, end;
	u64 handle, detail, result, made, caller, operand;
};
#define RECORD_ONLY_LENGTH (1 << 8)
#define RECORD_ON_TOKEN (1 << 9)

enum {
	TOTAL_BEGUN,
	TOTAL_ENDED,
	TOTAL_AT_ATTACH,
	TOTAL_SENT,
	TOTAL_LOST,
	/* Calls whose tally found no room. */
	TOTAL_CROWDED,
	TOTAL_ENTRIES,
	TOTAL_NOTES_LOST,
	/* Searches whose template or answer was too long, or in no memory yet. */
	TOTAL_NOT_COMPARED,
	/* Templates whose attributes are not known, for the same reasons. */
	TOTAL_NOT_READ,
	TOTALS,
};

/* What a cookie says of a probe: the function's number, and how its arguments are read. */
#define COOKIE_FUNCTION(cookie) ((u32)((cookie) & 0xFFFF))
#define COOKIE_HOW(cookie) ((u32)((cookie) >> 16))
#define HOW_MECHANISM 1
#define HOW_TEMPLATE 2
#define HOW_GIVES_OBJECTS 4
/* The argument itself is what it gives. */
#define HOW_GIVES_VALUE 8
/* The operand is the shape of its template. */
#define HOW_SHAPE 16
/* An object's handle stands behind that shape. */
#define HOW_OBJECT 32
/* More is told than what tells a call from another. */
#define HOW_LOAD 64
/* It makes an object, which may stay on the token. */
#define HOW_MAKES 128
/* Which arguments matter, from 1; 0 for none. */
#define HOW_PLACE(how, nth) ((how) >> (8 + 4 * (nth)) & 15)
#define PLACE_GIVES 0
#define PLACE_OUTPUT 1
#define PLACE_OPERAND 2
#define PLACE_TEMPLATE 3
#define PLACE_OTHER_TEMPLATE 4

/* The run's own. */
struct digest_key {
	u64 first, second;
};

struct map settings SECTION("maps") = { MAP_ARRAY, 4, sizeof(struct settings), 1, 0 };
struct map digest_key SECTION("maps") = { MAP_ARRAY, 4, sizeof(struct digest_key), 1, 0 };
struct map processes SECTION("maps") = { MAP_HASH, 4, 4, 32768, NO_PREALLOC };
struct map threads SECTION("maps") = { MAP_HASH, 8, sizeof(struct thread), 65536, NO_PREALLOC };
/* What a new thread begins as: it is too large for the stack. */
struct map blank SECTION("maps") = { MAP_ARRAY, 4, sizeof(struct thread), 1, 0 };
struct map totals SECTION("maps") = { MAP_PERCPU_ARRAY, 4, 8, TOTALS, 0 };
struct map tallies SECTION("maps") = { MAP_PERCPU_HASH, sizeof(struct call_key),
	sizeof(struct call_tally), 65536, NO_PREALLOC };
/* 20 KiB of each processor's memory for a function. Their number of entries is the loader's. */
struct map times SECTION("maps") = { MAP_PERCPU_ARRAY, 4, sizeof(struct function_times), 1, 0 };
/* Attributes that are told apart, by their number: the bit that each has in a shape. */
#define SHAPED_KINDS 0x203
#define OTHER_ATTRIBUTES (1 << 15)
struct map shaped SECTION("maps") = { MAP_ARRAY, 4, 4, SHAPED_KINDS, 0 };
struct map ring SECTION("maps") = { MAP_RINGBUF, 0, 0, 4096, 0 };

INLINE void add_to(u32 total)
{
	u64 *value = map_lookup(&totals, &total);
	if (value)
		*value += 1;
}

INLINE struct settings *the_settings(void)
{
	u32 zero = 0;
	return map_lookup(&settings, &zero);
}

INLINE _Bool is_enabled(void)
{
	struct settings *set = the_settings();
	return set && *(volatile u32 *)&set->enabled;
}

INLINE _Bool is_watched(void)
{
	u32 process = pid_tgid() >> 32;
	return map_lookup(&processes, &process) != 0;
}

/* Of a number that is not 0: the processor's instruction is none of BPF's. */
INLINE u32 highest_bit(u64 number)
{
	u32 bit = 0;
	for (u32 half = 32; half; half >>= 1) {
		if (number >> half) {
			bit += half;
			number >>= half;
		}
	}
	return bit;
}

INLINE u32 bucket_of(u64 time)
{
	if (time < 1 << SUB_BITS)
		return time;
	if (time >> OCTAVES)
		return BUCKETS - 1;
	u32 top = highest_bit(time);
	u32 octave = top - SUB_BITS;
	return ((octave + 1) << SUB_BITS) + ((time >> octave) & ((1 << SUB_BITS) - 1));
}

INLINE void count_call(u32 function, u64 result, u64 time, _Bool is_timed)
{
	u64 id = pid_tgid();
	struct call_key key = { id >> 32, (u32)id, function, 0, result };
	struct call_tally *tally = map_lookup(&tallies, &key);
	if (!tally) {
		struct call_tally none = {};
		map_update(&tallies, &key, &none, NOEXIST);
		tally = map_lookup(&tallies, &key);
	}
	if (tally) {
		tally->count += 1;
		tally->total_ns += time;
	} else {
		add_to(TOTAL_CROWDED);
	}
	if (!is_timed)
		return;
	struct function_times *of = map_lookup(&times, &function);
	u32 bucket = bucket_of(time);
	if (of && bucket < BUCKETS) {
		of->bucket[bucket].count += 1;
		of->bucket[bucket].total_ns += time;
	}
}

/* CK_RV has as many bits as a register; nothing else is watched here. */
SECTION("uprobe.session") int count_session(struct registers *ctx)
{
	u64 *began = bpf_session_cookie();
	if (bpf_session_is_return()) {
		if (!is_enabled())
			return 0;
		if (!*began) {
			add_to(TOTAL_AT_ATTACH);
			return 0;
		}
		u64 time = now() - *began;
		add_to(TOTAL_ENDED);
		count_call(COOKIE_FUNCTION(attach_cookie(ctx)), ctx->ax, time, 1);
		return 0;
	}
	if (!is_watched())
		return 1;
	*began = 0;
	if (!is_enabled())
		return 0;
	add_to(TOTAL_BEGUN);
	*began = now();
	return 0;
}

/* The compiler may know that a place is inside; the verifier has to see it. */
INLINE struct frame *frame_at(struct thread *at, u64 place)
{
	asm volatile("" : "+r"(place));
	return &at->frame[place & (DEPTH - 1)];
}

INLINE void drop_dead_frames(struct thread *at, u64 stack)
{
	u32 depth = at->depth;
	for (u32 i = 0; i < DEPTH; i++) {
		if (depth == 0 || depth > DEPTH)
			break;
		if (frame_at(at, depth - 1)->stack >= stack)
			break;
		depth--;
	}
	if (depth >= DEPTH)
		depth = 0;
	at->depth = depth;
}

INLINE struct thread *this_thread(void)
{
	u64 id = pid_tgid();
	struct thread *at = map_lookup(&threads, &id);
	if (at)
		return at;
	u32 zero = 0;
	struct thread *none = map_lookup(&blank, &zero);
	if (none)
		map_update(&threads, &id, none, NOEXIST);
	return map_lookup(&threads, &id);
}

/* SipHash-2-4, by whole words. */
struct digest {
	u64 a, b, c, d;
};

INLINE u64 rotated(u64 word, u32 by)
{
	return word << by | word >> (64 - by);
}

INLINE void mix(struct digest *at)
{
	at->a += at->b;
	at->b = rotated(at->b, 13) ^ at->a;
	at->a = rotated(at->a, 32);
	at->c += at->d;
	at->d = rotated(at->d, 16) ^ at->c;
	at->a += at->d;
	at->d = rotated(at->d, 21) ^ at->a;
	at->c += at->b;
	at->b = rotated(at->b, 17) ^ at->c;
	at->c = rotated(at->c, 32);
}

INLINE void digest_word(struct digest *at, u64 word)
{
	at->d ^= word;
	mix(at);
	mix(at);
	at->a ^= word;
}

INLINE _Bool begin_digest(struct digest *at)
{
	u32 zero = 0;
	struct digest_key *key = map_lookup(&digest_key, &zero);
	if (!key)
		return 0;
	at->a = key->first ^ 0x736f6d6570736575ULL;
	at->b = key->second ^ 0x646f72616e646f6dULL;
	at->c = key->first ^ 0x6c7967656e657261ULL;
	at->d = key->second ^ 0x7465646279746573ULL;
	return 1;
}

INLINE u64 end_digest(struct digest *at)
{
	at->c ^= 0xff;
	for (u32 i = 0; i < 4; i++)
		mix(at);
	return at->a ^ at->b ^ at->c ^ at->d;
}

#define MOST_ATTRIBUTES 16
#define VALUE_WORDS 16
#define VALUE_BYTES (8 * VALUE_WORDS)

/* So many bytes of the program's memory, and zeros up to a whole word. */
INLINE _Bool digest_bytes(struct digest *at, u64 from, u64 bytes)
{
	u64 value[VALUE_WORDS] = {};
	if (bytes > VALUE_BYTES || (bytes && !from))
		return 0;
	if (bytes && read_user(value, bytes, (void *)from))
		return 0;
#pragma clang loop unroll(disable)
	for (u32 word = 0; word < VALUE_WORDS; word++) {
		if (8 * word >= bytes)
			break;
		digest_word(at, value[word]);
	}
	return 1;
}

/* CK_ATTRIBUTE: type, value, length. 0: not compared. */
INLINE u64 template_digest(u64 template, u64 count)
{
	struct digest digest;
	if (count > MOST_ATTRIBUTES || (count && !template) || !begin_digest(&digest))
		return 0;
	digest_word(&digest, count);
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < MOST_ATTRIBUTES; i++) {
		if (i >= count)
			break;
		u64 attribute[3];
		if (read_user(attribute, sizeof(attribute), (void *)(template + i * sizeof(attribute))))
			return 0;
		digest_word(&digest, attribute[0]);
		digest_word(&digest, attribute[2]);
		if (!digest_bytes(&digest, attribute[1], attribute[2]))
			return 0;
	}
	u64 end = end_digest(&digest);
	return end ? end : 1;
}

#define HANDLES_A_PART (VALUE_WORDS)
#define MOST_PARTS 16

/* Of the handles that a search gave. 0: not compared. */
INLINE u32 objects_digest(u64 objects, u64 count)
{
	struct digest digest;
	if (count > MOST_PARTS * HANDLES_A_PART || !begin_digest(&digest))
		return 0;
	u64 bytes = 8 * count;
#pragma clang loop unroll(disable)
	for (u32 part = 0; part < MOST_PARTS; part++) {
		u64 before = part * VALUE_BYTES;
		if (before >= bytes)
			break;
		u64 left = bytes - before;
		if (!digest_bytes(&digest, objects + before, left < VALUE_BYTES ? left : VALUE_BYTES))
			return 0;
	}
	u32 end = end_digest(&digest);
	return end ? end : 1;
}

/* Numbers tell something, addresses nothing. */
INLINE u64 detail_of(struct registers *ctx, u32 how)
{
	u64 second = ctx->si;
	if (how & HOW_MECHANISM) {
		u64 mechanism = 0;
		if (second)
			read_user(&mechanism, sizeof(mechanism), (void *)second);
		return mechanism;
	}
	if (how & HOW_TEMPLATE) {
		u64 digest = template_digest(second, *(volatile u64 *)&ctx->dx);
		if (!digest)
			add_to(TOTAL_NOT_COMPARED);
		return digest;
	}
	return second >> 32 ? 0 : second;
}

/* Registers are read at fixed places, as the verifier wants it. Arguments behind the sixth are on the
 * stack, behind the address of return (System V ABI for AMD64, 3.2.3). */
INLINE void note_arguments(struct frame *frame, struct registers *ctx, u32 how)
{
	frame->argument[1] = ctx->di;
	frame->argument[2] = ctx->si;
	frame->argument[3] = ctx->dx;
	frame->argument[4] = ctx->cx;
	frame->argument[5] = ctx->r8;
	frame->argument[6] = ctx->r9;
	if (how & HOW_LOAD)
		read_user(&frame->argument[7], 2 * sizeof(u64), (void *)(ctx->sp + sizeof(u64)));
}

/* The compiler may know that a place is inside; the verifier has to see it. */
INLINE u64 argument(struct frame *frame, u64 place)
{
	asm volatile("" : "+r"(place));
	return frame->argument[place & (ARGUMENTS - 1)];
}

/* Which bit an attribute has in a shape. */
INLINE u64 attribute_bit(u64 kind)
{
	u32 place = kind < SHAPED_KINDS ? kind : SHAPED_KINDS - 1;
	u32 *bit = map_lookup(&shaped, &place);
	return bit && *bit ? *bit : OTHER_ATTRIBUTES;
}

#define CKA_CLASS 0
#define CKA_TOKEN 1
#define SHAPE_BITS 41
#define SHAPE_LENGTHS (1ULL << 40)
#define SHAPE_ON_TOKEN (1ULL << 63)

/* The shape of a template as `template_shape` of tapstone-probe-core has it, and whether it says that
 * an object stays on the token. Values are read where they are the caller's, and not where there is
 * only room for them. 0: too long, or in no memory yet. */
INLINE u64 template_shape(u64 template, u64 count, _Bool are_given)
{
	if (count > MOST_ATTRIBUTES || (count && !template))
		return 0;
	u64 shape = count << 16 | (count ? SHAPE_LENGTHS : 0);
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < MOST_ATTRIBUTES; i++) {
		if (i >= count)
			break;
		u64 attribute[3];
		if (read_user(attribute, sizeof(attribute), (void *)(template + i * sizeof(attribute))))
			return 0;
		shape |= attribute_bit(attribute[0]);
		if (!attribute[1])
			continue;
		shape &= ~SHAPE_LENGTHS;
		u64 value = 0;
		if (!are_given)
			continue;
		if (attribute[0] == CKA_CLASS && attribute[2] == sizeof(value)) {
			read_user(&value, sizeof(value), (void *)attribute[1]);
			shape |= (value < 0xFFFF ? value + 1 : 0xFFFF) << 24;
		}
		if (attribute[0] == CKA_TOKEN && attribute[2]) {
			read_user(&value, 1, (void *)attribute[1]);
			shape |= value ? SHAPE_ON_TOKEN : 0;
		}
	}
	return shape;
}

/* What else is told of a call. */
INLINE void note_load(struct frame *frame, u32 how)
{
	u32 output = HOW_PLACE(how, PLACE_OUTPUT);
	if (output && !argument(frame, output))
		frame->flags |= RECORD_ONLY_LENGTH;
	frame->operand = argument(frame, HOW_PLACE(how, PLACE_OPERAND));
	u64 shape = 0;
#pragma clang loop unroll(disable)
	for (u32 nth = PLACE_TEMPLATE; nth <= PLACE_OTHER_TEMPLATE; nth++) {
		u32 place = HOW_PLACE(how, nth);
		if (!place)
			break;
		u64 count = argument(frame, place + 1);
		shape = template_shape(argument(frame, place), count, !(how & HOW_OBJECT));
		/* What cannot be read may say that it stays. */
		_Bool is_unread = !shape && count;
		if (is_unread)
			add_to(TOTAL_NOT_READ);
		if (how & HOW_MAKES && (is_unread || shape & SHAPE_ON_TOKEN))
			frame->flags |= RECORD_ON_TOKEN;
	}
	if (how & HOW_SHAPE)
		frame->operand = shape & ~SHAPE_ON_TOKEN;
	u64 object = frame->argument[2];
	if (how & HOW_OBJECT && !(object >> (64 - SHAPE_BITS)))
		frame->operand |= object << SHAPE_BITS;
}

INLINE struct frame *begin_call(struct registers *ctx, u64 cookie, u32 *place)
{
	struct thread *at = this_thread();
	if (!at)
		return 0;
	u64 stack = ctx->sp;
	drop_dead_frames(at, stack);
	u32 depth = at->depth & (DEPTH - 1);
	struct frame *frame = frame_at(at, depth);
	u32 how = COOKIE_HOW(cookie);
	frame->function = COOKIE_FUNCTION(cookie);
	frame->how = how;
	frame->stack = stack;
	frame->handle = ctx->di >> 47 ? 0 : ctx->di;
	frame->detail = detail_of(ctx, how);
	note_arguments(frame, ctx, how);
	frame->gives = argument(frame, HOW_PLACE(how, PLACE_GIVES));
	frame->flags = 0;
	frame->operand = 0;
	if (how & HOW_LOAD)
		note_load(frame, how);
	frame->objects = ctx->si;
	frame->caller = 0;
	read_user(&frame->caller, sizeof(frame->caller), (void *)stack);
	at->depth = depth + 1;
	at->waits_in = 0;
	*place = depth + 1;
	frame->start = now();
	return frame;
}

INLINE struct record *new_record(u32 kind)
{
	struct record *record = ring_reserve(&ring, sizeof(struct record), 0);
	if (!record)
		return 0;
	u64 id = pid_tgid();
	record->kind = kind;
	record->process = id >> 32;
	record->thread = (u32)id;
	return record;
}

/* Their number, and a digest of their handles: one that comes once where they are not compared. */
INLINE u64 found_objects(struct frame *frame, u64 count)
{
	u32 digest = objects_digest(frame->objects, count);
	if (!digest) {
		add_to(TOTAL_NOT_COMPARED);
		digest = now();
	}
	return (u64)digest << 32 | (u32)count;
}

INLINE void send_call(u32 kind, struct frame *frame, u64 result, u64 end)
{
	struct record *record = new_record(kind);
	if (!record) {
		add_to(TOTAL_LOST);
		return;
	}
	record->kind |= frame->flags;
	record->function = frame->function;
	record->start = frame->start;
	record->end = end;
	record->handle = frame->handle;
	record->detail = frame->detail;
	record->result = result;
	record->caller = frame->caller;
	record->operand = frame->operand;
	record->made = 0;
	/* A handle, a length or a number of objects, where the call went well. */
	if (frame->how & HOW_GIVES_VALUE)
		record->made = frame->gives;
	else if (frame->gives && result == 0)
		read_user(&record->made, sizeof(record->made), (void *)frame->gives);
	if (frame->how & HOW_GIVES_OBJECTS)
		record->made = found_objects(frame, record->made);
	ring_submit(record, NO_WAKEUP);
	add_to(TOTAL_SENT);
}

INLINE void end_call(struct registers *ctx, u32 place)
{
	u64 end = now();
	add_to(TOTAL_ENDED);
	u64 id = pid_tgid();
	struct thread *at = map_lookup(&threads, &id);
	if (!at || place == 0 || place > DEPTH) {
		add_to(TOTAL_LOST);
		return;
	}
	struct frame *frame = frame_at(at, place - 1);
	at->depth = place - 1;
	at->waits_in = 0;
	send_call(RECORD_CALL, frame, ctx->ax, end);
}

/* No room for a thread or a frame. */
#define NO_PLACE (DEPTH + 1)
#define BEFORE_ENABLED (DEPTH + 2)

SECTION("uprobe.session") int send_session(struct registers *ctx)
{
	u64 *place = bpf_session_cookie();
	if (bpf_session_is_return()) {
		if (!is_enabled())
			return 0;
		if (*place == BEFORE_ENABLED)
			add_to(TOTAL_AT_ATTACH);
		else
			end_call(ctx, *place);
		return 0;
	}
	if (!is_watched())
		return 1;
	*place = BEFORE_ENABLED;
	if (!is_enabled())
		return 0;
	add_to(TOTAL_BEGUN);
	u32 at = NO_PLACE;
	begin_call(ctx, attach_cookie(ctx), &at);
	*place = at;
	return 0;
}

/* Before sessions (kernel 6.13), a pair: the place is found by the stack. */
SECTION("uprobe.multi") int pair_begin(struct registers *ctx)
{
	if (!is_watched() || !is_enabled())
		return 0;
	add_to(TOTAL_BEGUN);
	u32 at = NO_PLACE;
	begin_call(ctx, attach_cookie(ctx), &at);
	return 0;
}

/* The innermost open call of that function. At a return the stack pointer is behind the address. */
INLINE u32 place_of_return(struct thread *at, struct registers *ctx)
{
	u32 function = COOKIE_FUNCTION(attach_cookie(ctx));
	u32 depth = at->depth;
	for (u32 i = 0; i < DEPTH; i++) {
		if (depth == 0 || depth > DEPTH)
			break;
		struct frame *frame = frame_at(at, depth - 1);
		if (frame->function == function && frame->stack + 8 == ctx->sp)
			return depth;
		depth--;
	}
	return 0;
}

SECTION("uprobe.multi") int pair_end_sent(struct registers *ctx)
{
	if (!is_watched() || !is_enabled())
		return 0;
	u64 id = pid_tgid();
	struct thread *at = map_lookup(&threads, &id);
	u32 place = at ? place_of_return(at, ctx) : 0;
	if (place)
		end_call(ctx, place);
	else
		add_to(TOTAL_AT_ATTACH);
	return 0;
}

SECTION("uprobe.multi") int pair_end_counted(struct registers *ctx)
{
	if (!is_watched() || !is_enabled())
		return 0;
	u64 end = now();
	u64 id = pid_tgid();
	struct thread *at = map_lookup(&threads, &id);
	u32 place = at ? place_of_return(at, ctx) : 0;
	if (!place) {
		add_to(TOTAL_AT_ATTACH);
		return 0;
	}
	struct frame *frame = frame_at(at, place - 1);
	at->depth = place - 1;
	add_to(TOTAL_ENDED);
	count_call(frame->function, ctx->ax, end - frame->start, 1);
	return 0;
}

/* Functions whose return is not watched. Their return code is not known. */
#define RESULT_UNSEEN (~0ULL)

SECTION("uprobe.multi") int count_entry(struct registers *ctx)
{
	if (!is_watched() || !is_enabled())
		return 0;
	add_to(TOTAL_ENTRIES);
	count_call(COOKIE_FUNCTION(attach_cookie(ctx)), RESULT_UNSEEN, 0, 0);
	return 0;
}

SECTION("uprobe.multi") int send_entry(struct registers *ctx)
{
	if (!is_watched() || !is_enabled())
		return 0;
	add_to(TOTAL_ENTRIES);
	u64 cookie = attach_cookie(ctx);
	struct frame frame = {};
	frame.function = COOKIE_FUNCTION(cookie);
	frame.handle = ctx->di >> 47 ? 0 : ctx->di;
	frame.detail = detail_of(ctx, COOKIE_HOW(cookie));
	read_user(&frame.caller, sizeof(frame.caller), (void *)ctx->sp);
	frame.start = now();
	send_call(RECORD_ENTRY, &frame, RESULT_UNSEEN, frame.start);
	return 0;
}

struct tracepoint {
	u64 argument[4];
};

/* System calls that sleep or wait, x86-64. */
#define NR_READ 0
#define NR_POLL 7
#define NR_SELECT 23
#define NR_NANOSLEEP 35
#define NR_CONNECT 42
#define NR_ACCEPT 43
#define NR_RECVFROM 45
#define NR_RECVMSG 47
#define NR_WAIT4 61
#define NR_WAITID 247
#define NR_FUTEX 202
#define NR_CLOCK_NANOSLEEP 230
#define NR_EPOLL_WAIT 232
#define NR_PSELECT6 270
#define NR_PPOLL 271
#define NR_EPOLL_PWAIT 281
#define NR_ACCEPT4 288
/* Shorter waits are not told. */
#define LEAST_WAIT_NS 10000

INLINE _Bool may_wait(u64 call)
{
	return call == NR_NANOSLEEP || call == NR_CLOCK_NANOSLEEP || call == NR_FUTEX ||
		call == NR_POLL || call == NR_PPOLL || call == NR_SELECT || call == NR_PSELECT6 ||
		call == NR_EPOLL_WAIT || call == NR_EPOLL_PWAIT;
}

/* Those that may wait for somebody outside, and often do not. */
INLINE _Bool may_wait_outside(u64 call)
{
	return call == NR_READ || call == NR_CONNECT || call == NR_ACCEPT || call == NR_RECVFROM ||
		call == NR_RECVMSG || call == NR_WAIT4 || call == NR_WAITID || call == NR_ACCEPT4;
}

INLINE _Bool tells_inputs(void)
{
	struct settings *set = the_settings();
	return set && set->inputs;
}

SECTION("raw_tp/sys_enter") int wait_begins(struct tracepoint *ctx)
{
	u64 call = ctx->argument[1];
	if (!may_wait(call) && !(may_wait_outside(call) && tells_inputs()))
		return 0;
	u64 id = pid_tgid();
	struct thread *at = map_lookup(&threads, &id);
	if (!at || !is_enabled())
		return 0;
	/* From 1: read(2) is 0. */
	at->waits_in = (u32)call + 1;
	at->wait_start = now();
	return 0;
}

SECTION("raw_tp/sys_exit") int wait_ends(struct tracepoint *ctx)
{
	u64 id = pid_tgid();
	struct thread *at = map_lookup(&threads, &id);
	if (!at || at->waits_in == 0)
		return 0;
	u32 call = at->waits_in - 1;
	at->waits_in = 0;
	u64 end = now();
	if (end - at->wait_start < LEAST_WAIT_NS || !is_enabled())
		return 0;
	struct record *record = new_record(RECORD_WAIT);
	if (!record) {
		add_to(TOTAL_NOTES_LOST);
		return 0;
	}
	record->function = call;
	record->start = at->wait_start;
	record->end = end;
	record->handle = 0;
	record->detail = 0;
	record->result = ctx->argument[1];
	record->made = 0;
	record->caller = 0;
	record->operand = 0;
	ring_submit(record, NO_WAKEUP);
	return 0;
}

INLINE void send_note(u32 kind, u64 other)
{
	struct record *record = new_record(kind);
	if (!record) {
		add_to(TOTAL_NOTES_LOST);
		return;
	}
	record->function = 0;
	record->start = record->end = now();
	record->handle = other;
	record->detail = record->result = record->made = record->caller = record->operand = 0;
	ring_submit(record, NO_WAKEUP);
}

/* Runs in the parent. */
SECTION("raw_tp/sched_process_fork") int forks(struct tracepoint *ctx)
{
	struct settings *set = the_settings();
	if (!set || !set->children || !is_watched())
		return 0;
	u32 child = 0;
	read_kernel(&child, sizeof(child), (void *)(ctx->argument[1] + set->tgid_at));
	u32 parent = pid_tgid() >> 32;
	if (child == 0 || child == parent)
		return 0;
	u32 one = 1;
	map_update(&processes, &child, &one, 0);
	send_note(RECORD_FORK, child);
	return 0;
}

SECTION("raw_tp/sched_process_exec") int executes(struct tracepoint *ctx)
{
	if (!is_watched())
		return 0;
	u64 id = pid_tgid();
	map_delete(&threads, &id);
	send_note(RECORD_EXEC, 0);
	return 0;
}

SECTION("raw_tp/sched_process_exit") int exits(struct tracepoint *ctx)
{
	if (!is_watched())
		return 0;
	u64 id = pid_tgid();
	map_delete(&threads, &id);
	if ((u32)id == (u32)(id >> 32))
		send_note(RECORD_EXIT, 0);
	return 0;
}
