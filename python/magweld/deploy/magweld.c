/* Owns the runtime of portable artifacts; magweld.h says what it does. The format is
 * described in docs/deployment.md. */
#define _GNU_SOURCE
#include "magweld.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define ALIGNMENT 64
#define HEADER_BYTES 64
#define VERSION 1
#define IDLE_FRAMES 4
#define LISTED_FORMS 8 /* of more, errors tell the ranges */
#define SPINS 2000
#define LIMIT ((int64_t)1 << 48) /* where memory ends: no sum of two overflows */
#define SIGNATURE_BYTES 64
#define KEY_BYTES 32
#define ED25519 1087 /* EVP_PKEY_ED25519 of OpenSSL */
#ifndef MAGWELD_LIBCRYPTO /* names that are tried, in this order */
#define MAGWELD_LIBCRYPTO "libcrypto.so.4", "libcrypto.so.3", "libcrypto.so.1.1"
#endif

/* A program that loads no signed artifact need not link with what has them. For a weak
 * reference a linker does not keep a library: hence --no-as-needed below. */
#pragma weak dlopen
#pragma weak dlsym

enum { NONE, RUNTIME, INPUT, OUTPUT, FRAME, DATA };      /* kinds of places */
enum { PLACE_WORDS = 3, COPY_WORDS = 8, AXIS_WORDS = 3 }; /* of the description */

typedef void range_function(void **table, int64_t begin, int64_t end);
typedef int64_t entry_function(void **table);

typedef struct {
  const char *name;
  magweld_dtype dtype;
} port;

typedef struct {
  int64_t level, offset, bytes, text_bytes, import_count;
  const int64_t *imports;
  unsigned char *memory; /* null while it is not loaded */
} image;

typedef struct {
  int64_t code, entry, frame_bytes, table_count, copy_count;
  const int64_t *const *shapes; /* of inputs, then outputs: rank, extents */
  const int64_t *table, *copies;
} form;

typedef struct pool pool;

struct magweld_model {
  unsigned char *file;
  int64_t file_bytes;
  size_t input_count, output_count, failure_count, image_count, form_count;
  port *ports; /* inputs, then outputs */
  const char **failures;
  image *images;
  form *forms; /* those of the level that is used */
  const int64_t **shapes;
  int level;
  pool *pool;
  pthread_mutex_t lock; /* of the frames that no run uses */
  void *frames[IDLE_FRAMES];
  size_t frame_sizes[IDLE_FRAMES];
};

/* Errors */

static magweld_status fail(magweld_error *error, magweld_status status,
                           const char *format, ...) {
  if (error) {
    va_list arguments;
    va_start(arguments, format);
    error->status = status;
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
  }
  return status;
}

static magweld_status succeed(magweld_error *error) {
  if (error) {
    error->status = MAGWELD_OK;
    error->text[0] = 0;
  }
  return MAGWELD_OK;
}

static magweld_status no_memory(magweld_error *error) {
  return fail(error, MAGWELD_ERROR_MEMORY, "there is not enough memory");
}

static magweld_status damaged(magweld_error *error, const char *reason) {
  return fail(error, MAGWELD_ERROR_DAMAGED, "no intact portable artifact: %s", reason);
}

/* SHA-256, FIPS 180-4 */

static uint32_t rotated(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void hash_block(uint32_t state[8], const unsigned char *block) {
  static const uint32_t k[64] = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
      0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
      0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
      0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
      0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
      0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
      0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
      0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
      0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  uint32_t w[64], s[8];
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
           (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
  for (int i = 16; i < 64; i++)
    w[i] = w[i - 16] + w[i - 7] +
           (rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ w[i - 15] >> 3) +
           (rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ w[i - 2] >> 10);
  memcpy(s, state, sizeof s);
  for (int i = 0; i < 64; i++) {
    uint32_t a = s[7] + (rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25)) +
                 ((s[4] & s[5]) ^ (~s[4] & s[6])) + k[i] + w[i];
    uint32_t b = (rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22)) +
                 ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += a;
    s[0] = a + b;
  }
  for (int i = 0; i < 8; i++) state[i] += s[i];
}

/* Computes the digest of a file of at least a header. */
static void digest_of(const unsigned char *file, size_t count, unsigned char *digest) {
  uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  unsigned char block[2 * 64] = {0};
  memcpy(block, file, 32); /* the digest in the file counts as zeros */
  hash_block(state, block);
  size_t at = HEADER_BYTES, rest = count % 64, last = rest < 56 ? 64 : 128;
  for (; at + 64 <= count; at += 64) hash_block(state, file + at);
  memset(block, 0, sizeof block);
  memcpy(block, file + at, rest);
  block[rest] = 0x80;
  for (size_t i = 0; i < 8; i++)
    block[last - 1 - i] = (unsigned char)((uint64_t)count * 8 >> (8 * i));
  for (size_t i = 0; i < last; i += 64) hash_block(state, block + i);
  for (int i = 0; i < 32; i++) digest[i] = (unsigned char)(state[i / 4] >> (24 - i % 4 * 8));
}

/* The CPU */

static int cpu_level(void) {
#if defined(__x86_64__)
  unsigned a, b, c, d, b7, c7, d7, extended;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !__get_cpuid_count(7, 0, &a, &b7, &c7, &d7) ||
      !__get_cpuid(0x80000001, &a, &b, &extended, &d))
    return 0;
  /* SSE3, SSSE3, FMA, CX16, SSE4.1, SSE4.2, MOVBE, POPCNT, OSXSAVE, AVX, F16C */
  const unsigned first = 1u << 0 | 1u << 9 | 1u << 12 | 1u << 13 | 1u << 19 | 1u << 20 |
                         1u << 22 | 1u << 23 | 1u << 27 | 1u << 28 | 1u << 29;
  const unsigned avx2 = 1u << 3 | 1u << 5 | 1u << 8;   /* BMI1, AVX2, BMI2 */
  const unsigned more = 1u << 0 | 1u << 5;             /* LAHF, LZCNT */
  const unsigned avx512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;
  if ((c & first) != first || (b7 & avx2) != avx2 || (extended & more) != more) return 0;
  unsigned low, high; /* registers that the system saves */
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & 0x6) != 0x6) return 0;
  return (b7 & avx512) == avx512 && (low & 0xe6) == 0xe6 ? 4 : 3;
#else
  return 0;
#endif
}

/* Threads */

struct pool {
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  atomic_flag busy;      /* a run uses the threads */
  atomic_uint job;       /* counts jobs */
  atomic_int pending;    /* threads that have not finished the job */
  bool stop;
  range_function *range; /* the job */
  void **table;
  int64_t tiles, parts;
  atomic_int numbered;   /* threads that have a number */
  pid_t process;         /* that has the threads: they stay behind where it forks */
  int count;             /* threads beside that of the caller */
  pthread_t threads[];
};

static void pause_cpu(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void run_part(const pool *p, int64_t part) {
  if (part < p->parts)
    p->range(p->table, p->tiles * part / p->parts, p->tiles * (part + 1) / p->parts);
}

static void *work(void *argument) {
  pool *p = argument;
  int number = 1 + atomic_fetch_add(&p->numbered, 1);
  unsigned seen = 0;
  for (;;) {
    for (int i = 0; i < SPINS && atomic_load(&p->job) == seen; i++) pause_cpu();
    pthread_mutex_lock(&p->lock);
    while (atomic_load(&p->job) == seen) pthread_cond_wait(&p->wake, &p->lock);
    bool stop = p->stop;
    pthread_mutex_unlock(&p->lock);
    if (stop) return NULL;
    seen++;
    run_part(p, number);
    if (atomic_fetch_sub(&p->pending, 1) == 1) {
      pthread_mutex_lock(&p->lock);
      pthread_cond_signal(&p->done);
      pthread_mutex_unlock(&p->lock);
    }
  }
}

/* What generated code calls: runs all tiles, in at most `threads` threads, 0 being all.
 * The entry in front of a table is the pool. While another run uses its threads, and in a
 * process that was forked, the caller runs all tiles alone: results do not depend on it. */
static void magweld_parallel(void **table, range_function *range, int64_t tiles,
                             int64_t threads) {
  pool *p = table[-1];
  int64_t parts = p ? p->count + 1 : 1;
  if (threads > 0 && threads < parts) parts = threads;
  if (tiles < parts) parts = tiles;
  if (parts <= 1 || p->process != getpid() || atomic_flag_test_and_set(&p->busy)) {
    range(table, 0, tiles);
    return;
  }
  pthread_mutex_lock(&p->lock);
  p->range = range;
  p->table = table;
  p->tiles = tiles;
  p->parts = parts;
  atomic_store(&p->pending, p->count);
  atomic_fetch_add(&p->job, 1);
  pthread_cond_broadcast(&p->wake);
  pthread_mutex_unlock(&p->lock);
  run_part(p, 0);
  for (int i = 0; i < SPINS && atomic_load(&p->pending); i++) pause_cpu();
  pthread_mutex_lock(&p->lock);
  while (atomic_load(&p->pending)) pthread_cond_wait(&p->done, &p->lock);
  pthread_mutex_unlock(&p->lock);
  atomic_flag_clear(&p->busy);
}

static void free_pool(pool *p) {
  if (!p) return;
  if (p->process != getpid()) { /* another thread may have held the lock */
    free(p);
    return;
  }
  pthread_mutex_lock(&p->lock);
  p->stop = true;
  atomic_fetch_add(&p->job, 1);
  pthread_cond_broadcast(&p->wake);
  pthread_mutex_unlock(&p->lock);
  for (int i = 0; i < p->count; i++) pthread_join(p->threads[i], NULL);
  pthread_cond_destroy(&p->wake);
  pthread_cond_destroy(&p->done);
  pthread_mutex_destroy(&p->lock);
  free(p);
}

static int usable_cpus(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return 1;
}

/* Returns null if there is no memory; a system without threads to give has fewer. */
static pool *make_pool(int threads) {
  pool *p = calloc(1, sizeof *p + (size_t)(threads - 1) * sizeof *p->threads);
  if (!p) return NULL;
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->wake, NULL);
  pthread_cond_init(&p->done, NULL);
  atomic_flag_clear(&p->busy);
  p->process = getpid();
  while (p->count < threads - 1 &&
         pthread_create(&p->threads[p->count], NULL, work, p) == 0)
    p->count++;
  return p;
}

/* The description */

size_t magweld_item_size(magweld_dtype dtype) {
  static const unsigned char sizes[] = {0, 4, 8, 2, 2, 8, 4, 2, 1, 1, 1, 2, 4, 8, 8};
  return dtype > 0 && (size_t)dtype < sizeof sizes ? sizes[dtype] : 0;
}

static const char *dtype_name(magweld_dtype dtype) {
  static const char *const names[] = {
      "no type", "float32", "float64", "float16", "bfloat16", "int64",  "int32",    "int16",
      "int8",    "uint8",   "bool",    "uint16",  "uint32",   "uint64", "complex64"};
  return dtype > 0 && (size_t)dtype < sizeof names / sizeof *names ? names[dtype] : *names;
}

typedef struct {
  const int64_t *at, *end;
  bool bad;
} reader;

static const int64_t *take(reader *r, int64_t count) {
  const int64_t *at = r->at;
  if (r->bad || count < 0 || count > r->end - at) {
    r->bad = true;
    return NULL;
  }
  r->at += count;
  return at;
}

static int64_t take_number(reader *r) {
  const int64_t *at = take(r, 1);
  return at ? *at : 0;
}

/* A number of things that have at least a word each. */
static int64_t take_count(reader *r) {
  int64_t count = take_number(r);
  if (count < 0 || count > r->end - r->at) r->bad = true;
  return r->bad ? 0 : count;
}

static const char *take_text(reader *r) {
  int64_t count = take_number(r);
  if (count < 0 || count > (r->end - r->at) * 8) r->bad = true;
  const char *text = (const char *)take(r, r->bad ? -1 : count / 8 + 1);
  if (text && text[count]) r->bad = true;
  return text;
}

/* The extents of a tensor, after their number; null if they are none. */
static const int64_t *take_shape(reader *r) {
  const int64_t *shape = r->at;
  int64_t rank = take_number(r), elements = 1;
  if (rank < 0 || rank > MAGWELD_MAX_RANK) r->bad = true;
  const int64_t *extents = take(r, r->bad ? -1 : rank);
  for (int64_t i = 0; extents && i < rank; i++) {
    if (extents[i] < 0 || extents[i] > LIMIT ||
        (extents[i] && elements > LIMIT / extents[i])) {
      r->bad = true;
      return NULL;
    }
    elements *= extents[i];
  }
  return r->bad ? NULL : shape;
}

static int64_t element_count(const int64_t *shape) {
  int64_t elements = 1;
  for (int64_t i = 1; i <= shape[0]; i++) elements *= shape[i];
  return elements;
}

static const int64_t *shape_of(const magweld_model *m, const form *f, bool output,
                               size_t number) {
  return f->shapes[number + (output ? m->input_count : 0)];
}

static const port *port_of(const magweld_model *m, bool output, size_t number) {
  return m->ports + number + (output ? m->input_count : 0);
}

static int64_t tensor_bytes(const magweld_model *m, const form *f, bool output,
                            size_t number) {
  int64_t item = (int64_t)magweld_item_size(port_of(m, output, number)->dtype);
  return element_count(shape_of(m, f, output, number)) * item;
}

/* Tells whether `count` bytes are at a place. */
static bool has_room(const magweld_model *m, const form *f, const int64_t *place,
                     int64_t count) {
  int64_t size = -1, index = place[1];
  bool output = place[0] == OUTPUT;
  size_t ports = output ? m->output_count : m->input_count;
  if (place[0] == FRAME) size = f->frame_bytes;
  if (place[0] == DATA) size = m->file_bytes;
  if ((output || place[0] == INPUT) && index >= 0 && (size_t)index < ports)
    size = tensor_bytes(m, f, output, (size_t)index);
  return size >= count && place[2] >= 0 && place[2] <= size - count;
}

/* Bytes from the first to behind the last element on one side of a copy; -1 if none. */
static int64_t reach(const int64_t *axes, int64_t rank, int side, int64_t item) {
  int64_t total = item;
  for (int64_t i = 0; i < rank; i++, axes += AXIS_WORDS) {
    int64_t extent = axes[0], stride = axes[side];
    if (extent < 1 || extent > LIMIT || stride < 0 || stride > LIMIT ||
        (stride && extent > LIMIT / stride))
      return -1;
    total += (extent - 1) * stride;
  }
  return total;
}

static bool take_copy(const magweld_model *m, const form *f, reader *r) {
  const int64_t *copy = take(r, COPY_WORDS);
  const int64_t *axes = copy ? take(r, copy[7] < 0 || copy[7] > MAGWELD_MAX_RANK
                                           ? -1
                                           : copy[7] * AXIS_WORDS)
                             : NULL;
  if (!axes) return false;
  const int64_t *target = copy + PLACE_WORDS;
  int64_t item = copy[6], from = reach(axes, copy[7], 1, item),
          to = reach(axes, copy[7], 2, item);
  for (int64_t i = 0; i < copy[7]; i++)
    if (axes[i * AXIS_WORDS] == 0) return true; /* nothing is copied */
  return (item == 1 || item == 2 || item == 4 || item == 8) && from >= 0 && to >= 0 &&
         (target[0] == FRAME || target[0] == OUTPUT) && has_room(m, f, copy, from) &&
         has_room(m, f, target, to);
}

static bool take_form(magweld_model *m, reader *r, form *f, const int64_t **shapes) {
  f->code = take_number(r);
  f->entry = take_number(r);
  f->frame_bytes = take_number(r);
  f->shapes = shapes;
  for (size_t i = 0; i < m->input_count + m->output_count; i++) {
    shapes[i] = take_shape(r);
    if (!shapes[i]) return false;
  }
  if (f->code < 0 || (size_t)f->code >= m->image_count || f->frame_bytes < 0 ||
      f->frame_bytes > LIMIT || f->entry < 0 ||
      f->entry >= m->images[f->code].text_bytes)
    return false;
  f->table_count = take_count(r);
  f->table = take(r, f->table_count > LIMIT / PLACE_WORDS
                         ? -1
                         : f->table_count * PLACE_WORDS);
  if (!f->table) return false;
  for (int64_t i = 0; i < f->table_count; i++) {
    const int64_t *place = f->table + i * PLACE_WORDS;
    if (place[0] != NONE && place[0] != RUNTIME && !has_room(m, f, place, 0))
      return false;
  }
  f->copy_count = take_count(r);
  f->copies = r->at;
  for (int64_t i = 0; i < f->copy_count; i++)
    if (!take_copy(m, f, r)) return false;
  return !r->bad;
}

static bool take_image(magweld_model *m, reader *r, image *one) {
  one->level = take_number(r);
  one->offset = take_number(r);
  one->bytes = take_number(r);
  one->text_bytes = take_number(r);
  one->import_count = take_count(r);
  one->imports = r->at;
  if (r->bad || one->offset < 0 || one->bytes < 0 || one->offset > m->file_bytes ||
      one->bytes > m->file_bytes - one->offset || one->text_bytes < 0 ||
      one->text_bytes > one->bytes)
    return false;
  for (int64_t i = 0; i < one->import_count; i++) {
    int64_t slot = take_number(r);
    take_text(r);
    if (r->bad || slot % 8 || slot < one->text_bytes || slot > one->bytes - 8)
      return false;
  }
  return true;
}

static void take_ports(reader *r, port *ports, size_t count) {
  for (size_t i = 0; i < count && !r->bad; i++) {
    ports[i].name = take_text(r);
    int64_t dtype = take_number(r);
    if (dtype < 0 || dtype > MAGWELD_COMPLEX64) dtype = 0;
    ports[i].dtype = (magweld_dtype)dtype;
    if (!dtype) r->bad = true;
  }
}

/* Reads the ports of one direction into an array that grows; false without memory. */
static bool read_ports(magweld_model *m, reader *r, size_t before, size_t *count) {
  *count = (size_t)take_count(r);
  port *grown = realloc(m->ports, (before + *count + 1) * sizeof *grown);
  if (!grown) return false;
  m->ports = grown;
  take_ports(r, m->ports + before, *count);
  return true;
}

static magweld_status read_description(magweld_model *m, reader *r, int most,
                                       magweld_error *error) {
  take_text(r); /* who wrote it */
  take_text(r); /* how Python puts results together */
  if (!read_ports(m, r, 0, &m->input_count) ||
      !read_ports(m, r, m->input_count, &m->output_count))
    return no_memory(error);
  m->failure_count = (size_t)take_count(r);
  m->failures = calloc(m->failure_count + 1, sizeof *m->failures);
  if (!m->failures) return no_memory(error);
  for (size_t i = 0; i < m->failure_count; i++) m->failures[i] = take_text(r);
  m->image_count = (size_t)take_count(r);
  m->images = calloc(m->image_count + 1, sizeof *m->images);
  if (!m->images) return no_memory(error);
  int64_t lowest = INT32_MAX;
  for (size_t i = 0; i < m->image_count; i++) {
    if (!take_image(m, r, &m->images[i])) return damaged(error, "wrong code");
    if (m->images[i].level <= most && m->images[i].level > m->level)
      m->level = (int)m->images[i].level;
    if (m->images[i].level < lowest) lowest = m->images[i].level;
  }
  size_t forms = (size_t)take_count(r), ports = m->input_count + m->output_count;
  if (forms > (size_t)(r->end - r->at) / (ports + 1)) return damaged(error, "wrong words");
  m->forms = calloc(forms + 1, sizeof *m->forms);
  m->shapes = calloc(forms + 1, (ports + 1) * sizeof *m->shapes);
  if (!m->forms || !m->shapes) return no_memory(error);
  for (size_t i = 0; i < forms; i++) {
    form *f = &m->forms[m->form_count];
    if (!take_form(m, r, f, m->shapes + i * (ports + 1)))
      return damaged(error, "a wrong program");
    if (m->images[f->code].level == m->level) m->form_count++;
  }
  if (r->bad || r->at != r->end) return damaged(error, "wrong words");
  if (m->form_count) return MAGWELD_OK;
  if (cpu_level() >= lowest)
    return fail(error, MAGWELD_ERROR_CPU,
                "the artifact has no code up to x86-64-v%d, the highest level that is "
                "allowed; the least that it has is x86-64-v%d",
                most, (int)lowest);
  return fail(error, MAGWELD_ERROR_CPU,
              "the artifact needs a CPU of x86-64-v%d, which this is not", (int)lowest);
}

/* Machine code */

static uintptr_t import_address(const char *name) {
  static const struct {
    const char *name;
    uintptr_t address;
  } known[] = {{"magweld_parallel", (uintptr_t)magweld_parallel},
               {"memcpy", (uintptr_t)memcpy},
               {"memmove", (uintptr_t)memmove},
               {"memset", (uintptr_t)memset},
               {"malloc", (uintptr_t)malloc},
               {"free", (uintptr_t)free},
               {"pow", (uintptr_t)pow},
               {"powf", (uintptr_t)powf},
               {"fmod", (uintptr_t)fmod},
               {"fmodf", (uintptr_t)fmodf}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].name, name) == 0) return known[i].address;
  return 0;
}

static magweld_status load_image(magweld_model *m, image *one, magweld_error *error) {
  size_t bytes = (size_t)one->bytes, text = (size_t)one->text_bytes;
  if (!bytes || text % (size_t)sysconf(_SC_PAGESIZE))
    return damaged(error, "code that is not whole pages");
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
  if (memory == MAP_FAILED) return no_memory(error);
  one->memory = memory;
  memcpy(memory, m->file + one->offset, bytes);
  reader r = {one->imports, (const int64_t *)(const void *)(m->file + m->file_bytes),
              false};
  for (int64_t i = 0; i < one->import_count; i++) {
    int64_t slot = take_number(&r);
    uintptr_t address = import_address(take_text(&r));
    if (!address) return damaged(error, "code that calls an unknown function");
    memcpy(one->memory + slot, &address, sizeof address);
  }
  if (mprotect(memory, text, PROT_READ | PROT_EXEC) ||
      mprotect(one->memory + text, bytes - text, PROT_READ))
    return fail(error, MAGWELD_ERROR_MEMORY, "code cannot be made executable: %s",
                strerror(errno));
  return MAGWELD_OK;
}

/* Loading */

static void *aligned_memory(size_t bytes) {
  return aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
}

void magweld_free(magweld_model *m) {
  if (!m) return;
  free_pool(m->pool);
  for (size_t i = 0; m->images && i < m->image_count; i++)
    if (m->images[i].memory) munmap(m->images[i].memory, (size_t)m->images[i].bytes);
  for (int i = 0; i < IDLE_FRAMES; i++) free(m->frames[i]);
  pthread_mutex_destroy(&m->lock);
  free(m->shapes);
  free(m->forms);
  free(m->images);
  free(m->failures);
  free(m->ports);
  free(m->file);
  free(m);
}

static magweld_status load(magweld_model *m, const magweld_options *options,
                           magweld_error *error) {
  int64_t header[4]; /* magic, version, bytes of the file, bytes of the description */
  unsigned char digest[32];
  size_t bytes = (size_t)m->file_bytes;
  if (bytes < HEADER_BYTES || memcmp(m->file, "magweld", 8))
    return damaged(error, "it does not begin as one");
  memcpy(header, m->file, sizeof header);
  if (header[1] != VERSION)
    return fail(error, MAGWELD_ERROR_VERSION,
                "the artifact has format version %lld, this runtime reads %d",
                (long long)header[1], VERSION);
  if (header[2] != m->file_bytes) return damaged(error, "it has another length");
  digest_of(m->file, bytes, digest);
  if (memcmp(digest, m->file + 32, 32)) return damaged(error, "the digest differs");
  if (header[3] < 0 || header[3] % 8 || header[3] > m->file_bytes - HEADER_BYTES)
    return damaged(error, "wrong words");
  const int64_t *words = (const int64_t *)(const void *)(m->file + HEADER_BYTES);
  reader r = {words, words + header[3] / 8, false};
  int most = cpu_level(), threads = options ? options->threads : 0;
  if (options && options->level && options->level < most) most = options->level;
  if (threads < 0 || threads > 4096)
    return fail(error, MAGWELD_ERROR_ARGUMENT, "%d threads", threads);
  if (options && options->level < 0)
    return fail(error, MAGWELD_ERROR_ARGUMENT, "level %d", options->level);
  magweld_status status = read_description(m, &r, most, error);
  for (size_t i = 0; !status && i < m->image_count; i++)
    if (m->images[i].level == m->level) status = load_image(m, &m->images[i], error);
  if (!threads) threads = usable_cpus();
  if (!status && threads > 1 && !(m->pool = make_pool(threads)))
    status = no_memory(error);
  return status ? status : succeed(error);
}

/* Loads `file`, which the model owns from now on. */
static magweld_status load_owned(unsigned char *file, size_t bytes,
                                 const magweld_options *options, magweld_model **model,
                                 magweld_error *error) {
  magweld_model *m = calloc(1, sizeof *m);
  if (!m) {
    free(file);
    return no_memory(error);
  }
  pthread_mutex_init(&m->lock, NULL);
  m->file = file;
  m->file_bytes = (int64_t)bytes;
  magweld_status status = load(m, options, error);
  if (status)
    magweld_free(m);
  else
    *model = m;
  return status;
}

/* Copies an artifact of the caller to memory that a model can own. */
static magweld_status copy_bytes(const void *bytes, size_t count, unsigned char **file,
                                 magweld_error *error) {
  if (count > (size_t)LIMIT) return damaged(error, "it is too long");
  *file = aligned_memory(count);
  if (!*file) return no_memory(error);
  if (count) memcpy(*file, bytes, count);
  return MAGWELD_OK;
}

static magweld_status read_file(const char *path, unsigned char **file, size_t *count,
                                magweld_error *error) {
  struct stat facts;
  FILE *stream = fopen(path, "rb");
  if (!stream)
    return fail(error, MAGWELD_ERROR_FILE, "cannot read '%s': %s", path, strerror(errno));
  /* Folders can be opened, and devices and pipes have no length. */
  if (fstat(fileno(stream), &facts) || !S_ISREG(facts.st_mode) || facts.st_size > LIMIT) {
    fclose(stream);
    return fail(error, MAGWELD_ERROR_FILE, "cannot read '%s': it is no regular file", path);
  }
  size_t bytes = (size_t)facts.st_size;
  *file = aligned_memory(bytes);
  *count = *file ? fread(*file, 1, bytes, stream) : 0;
  fclose(stream);
  if (!*file) return no_memory(error);
  if (*count == bytes) return MAGWELD_OK;
  free(*file);
  return fail(error, MAGWELD_ERROR_FILE, "cannot read all of '%s'", path);
}

magweld_status magweld_load_bytes(const void *bytes, size_t count,
                                  const magweld_options *options,
                                  magweld_model **model, magweld_error *error) {
  if (!model || (!bytes && count))
    return fail(error, MAGWELD_ERROR_ARGUMENT, "a null pointer");
  *model = NULL;
  unsigned char *file;
  magweld_status status = copy_bytes(bytes, count, &file, error);
  return status ? status : load_owned(file, count, options, model, error);
}

magweld_status magweld_load(const char *path, const magweld_options *options,
                            magweld_model **model, magweld_error *error) {
  if (!model || !path) return fail(error, MAGWELD_ERROR_ARGUMENT, "a null pointer");
  *model = NULL;
  unsigned char *file;
  size_t count;
  magweld_status status = read_file(path, &file, &count, error);
  return status ? status : load_owned(file, count, options, model, error);
}

/* Signatures: Ed25519, RFC 8032, over all bytes of a file, by libcrypto */

/* Functions of libcrypto, in the order of their names below. */
typedef struct {
  int (*set_mark)(void);
  int (*pop_to_mark)(void);
  void *(*new_reader)(const void *bytes, int count);
  int (*free_reader)(void *reader);
  int (*read_pem)(void *reader, char **name, char **header, unsigned char **data,
                  long *count);
  void (*release)(void *memory, const char *file, int line);
  void *(*new_key)(int kind, void *engine, const unsigned char *bytes, size_t count);
  void (*free_key)(void *key);
  void *(*new_context)(void);
  void (*free_context)(void *context);
  int (*begin)(void *context, void **inner, const void *digest, void *engine, void *key);
  int (*verify)(void *context, const unsigned char *signature, size_t signature_count,
                const unsigned char *bytes, size_t count);
} libcrypto;

static magweld_status open_libcrypto(libcrypto *crypto, magweld_error *error) {
  static const char *const libraries[] = {MAGWELD_LIBCRYPTO};
  static const char *const names[] = {
      "ERR_set_mark",                "ERR_pop_to_mark",
      "BIO_new_mem_buf",             "BIO_free",
      "PEM_read_bio",                "CRYPTO_free",
      "EVP_PKEY_new_raw_public_key", "EVP_PKEY_free",
      "EVP_MD_CTX_new",              "EVP_MD_CTX_free",
      "EVP_DigestVerifyInit",        "EVP_DigestVerify"};
  enum { COUNT = sizeof names / sizeof *names };
  _Static_assert(sizeof *crypto == COUNT * sizeof(void *), "each name has a function");
  if (!dlopen || !dlsym)
    return fail(error, MAGWELD_ERROR_LIBRARY,
                "signatures cannot be checked: the program has no dlopen; link it "
                "dynamically, with -Wl,--no-as-needed -ldl before glibc 2.34");
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
    /* It stays open: it has functions that run when the process ends. */
    void *library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
    size_t found = 0;
    for (; library && found < COUNT; found++) {
      void *function = dlsym(library, names[found]);
      if (!function) break;
      memcpy((unsigned char *)crypto + found * sizeof function, &function,
             sizeof function);
    }
    if (found == COUNT) return MAGWELD_OK;
  }
  return fail(error, MAGWELD_ERROR_LIBRARY,
              "signatures cannot be checked: there is no libcrypto of OpenSSL 1.1.1 or "
              "newer; install it");
}

/* Reads a public key, RFC 8410, from the first block of a PEM; false if it is none. */
static bool read_key(const libcrypto *crypto, const void *pem, size_t count,
                     unsigned char *key) {
  static const unsigned char start[] = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
                                        0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};
  void *reader = count <= INT_MAX ? crypto->new_reader(pem, (int)count) : NULL;
  char *name, *header;
  unsigned char *data;
  long bytes;
  bool good = false;
  if (reader && crypto->read_pem(reader, &name, &header, &data, &bytes) == 1) {
    good = strcmp(name, "PUBLIC KEY") == 0 &&
           bytes == (long)(sizeof start + KEY_BYTES) &&
           memcmp(data, start, sizeof start) == 0;
    if (good) memcpy(key, data + sizeof start, KEY_BYTES);
    crypto->release(name, __FILE__, __LINE__);
    crypto->release(header, __FILE__, __LINE__);
    crypto->release(data, __FILE__, __LINE__);
  }
  if (reader) crypto->free_reader(reader);
  return good;
}

/* Returns 1 if a signature fits, 0 if it does not; else libcrypto could not tell. */
static int signature_fits(const libcrypto *crypto, const unsigned char *key,
                          const unsigned char *signature, const unsigned char *file,
                          size_t count) {
  int fits = -1;
  void *owner = crypto->new_key(ED25519, NULL, key, KEY_BYTES);
  void *context = crypto->new_context();
  if (owner && context && crypto->begin(context, NULL, NULL, NULL, owner) == 1)
    fits = crypto->verify(context, signature, SIGNATURE_BYTES, file, count);
  crypto->free_context(context);
  crypto->free_key(owner);
  return fits;
}

typedef struct {
  const void *signature;
  size_t signature_count;
  const void *pem; /* of the key */
  size_t pem_count;
} verification;

static magweld_status verify_signature(const verification *given,
                                       const unsigned char *file, size_t count,
                                       magweld_error *error) {
  libcrypto crypto;
  unsigned char key[KEY_BYTES];
  int fits = 0;
  magweld_status status = open_libcrypto(&crypto, error);
  if (status) return status;
  crypto.set_mark(); /* the errors that are kept for the thread are the caller's */
  bool has_key = read_key(&crypto, given->pem, given->pem_count, key);
  if (has_key && given->signature_count == SIGNATURE_BYTES)
    fits = signature_fits(&crypto, key, given->signature, file, count);
  crypto.pop_to_mark();
  if (!has_key)
    return fail(error, MAGWELD_ERROR_KEY, "the key is no public Ed25519 key as PEM");
  if (fits == 1) return MAGWELD_OK;
  if (fits == 0)
    return fail(error, MAGWELD_ERROR_SIGNATURE,
                "the signature does not fit: the artifact or the signature was changed, "
                "or another key signed it");
  return fail(error, MAGWELD_ERROR_LIBRARY,
              "signatures cannot be checked: libcrypto refuses Ed25519");
}

/* Loads `file`, which the model owns from now on, if it is signed. */
static magweld_status load_verified(unsigned char *file, size_t count,
                                    const verification *given,
                                    const magweld_options *options,
                                    magweld_model **model, magweld_error *error) {
  magweld_status status = verify_signature(given, file, count, error);
  if (!status) return load_owned(file, count, options, model, error);
  free(file);
  return status;
}

magweld_status magweld_load_bytes_verified(const void *bytes, size_t count,
                                           const void *signature, size_t signature_count,
                                           const char *public_key,
                                           const magweld_options *options,
                                           magweld_model **model, magweld_error *error) {
  if (!model || (!bytes && count) || (!signature && signature_count) || !public_key)
    return fail(error, MAGWELD_ERROR_ARGUMENT, "a null pointer");
  *model = NULL;
  if (!signature_count)
    return fail(error, MAGWELD_ERROR_UNSIGNED, "the artifact has no signature");
  verification given = {signature, signature_count, public_key, strlen(public_key)};
  unsigned char *file;
  magweld_status status = copy_bytes(bytes, count, &file, error);
  return status ? status : load_verified(file, count, &given, options, model, error);
}

/* Reads the signature beside an artifact, and one byte more if it is longer. */
static magweld_status read_signature(const char *path, unsigned char *signature,
                                     size_t *count, magweld_error *error) {
  static const char suffix[] = ".sig";
  size_t length = strlen(path);
  char *beside = malloc(length + sizeof suffix);
  if (!beside) return no_memory(error);
  memcpy(beside, path, length);
  memcpy(beside + length, suffix, sizeof suffix);
  errno = 0;
  FILE *stream = fopen(beside, "rb");
  *count = stream ? fread(signature, 1, SIGNATURE_BYTES + 1, stream) : 0;
  int reason = stream && !ferror(stream) ? 0 : errno ? errno : EIO;
  if (stream) fclose(stream);
  magweld_status status = MAGWELD_OK;
  if (reason == ENOENT)
    status = fail(error, MAGWELD_ERROR_UNSIGNED,
                  "the artifact has no signature: there is no '%s'", beside);
  else if (reason)
    status = fail(error, MAGWELD_ERROR_FILE, "cannot read '%s': %s", beside,
                  strerror(reason));
  free(beside);
  return status;
}

magweld_status magweld_load_verified(const char *path, const char *public_key,
                                     const magweld_options *options,
                                     magweld_model **model, magweld_error *error) {
  if (!model || !path || !public_key)
    return fail(error, MAGWELD_ERROR_ARGUMENT, "a null pointer");
  *model = NULL;
  unsigned char signature[SIGNATURE_BYTES + 1], *pem = NULL, *file = NULL;
  verification given = {.signature = signature};
  size_t count;
  magweld_status status = read_file(public_key, &pem, &given.pem_count, error);
  if (status) return status;
  given.pem = pem;
  status = read_signature(path, signature, &given.signature_count, error);
  if (!status) status = read_file(path, &file, &count, error);
  if (!status) status = load_verified(file, count, &given, options, model, error);
  free(pem);
  return status;
}

/* What the model takes and makes */

size_t magweld_input_count(const magweld_model *m) { return m->input_count; }
size_t magweld_output_count(const magweld_model *m) { return m->output_count; }
size_t magweld_form_count(const magweld_model *m) { return m->form_count; }
int magweld_level(const magweld_model *m) { return m->level; }

const char *magweld_input_name(const magweld_model *m, size_t input) {
  return input < m->input_count ? m->ports[input].name : NULL;
}

const char *magweld_output_name(const magweld_model *m, size_t output) {
  return output < m->output_count ? m->ports[m->input_count + output].name : NULL;
}

static void describe(const magweld_model *m, const form *f, bool output, size_t number,
                     magweld_tensor *described) {
  const int64_t *shape = shape_of(m, f, output, number);
  int64_t stride = 1;
  memset(described, 0, sizeof *described);
  described->dtype = port_of(m, output, number)->dtype;
  described->rank = (int32_t)shape[0];
  for (int32_t i = described->rank - 1; i >= 0; i--) {
    described->shape[i] = shape[1 + i];
    described->strides[i] = stride;
    stride *= shape[1 + i];
  }
}

magweld_status magweld_describe_input(const magweld_model *m, size_t number,
                                      size_t input, magweld_tensor *described) {
  if (number >= m->form_count || input >= m->input_count || !described)
    return MAGWELD_ERROR_ARGUMENT;
  describe(m, &m->forms[number], false, input, described);
  return MAGWELD_OK;
}

magweld_status magweld_describe_output(const magweld_model *m, size_t number,
                                       size_t output, magweld_tensor *described) {
  if (number >= m->form_count || output >= m->output_count || !described)
    return MAGWELD_ERROR_ARGUMENT;
  describe(m, &m->forms[number], true, output, described);
  return MAGWELD_OK;
}

/* Runs */

typedef struct {
  int64_t extent, from, to; /* strides in bytes */
} axis;

/* Copies elements one by one; of a size that is known, each is one move. */
#define COPY_EACH(SIZE)                             \
  for (int64_t i = 0; i < row->extent; i++)       \
  memcpy(to + i * row->to, from + i * row->from, SIZE)

static void copy_row(unsigned char *to, const unsigned char *from, const axis *row,
                     size_t item) {
  if (row->from == (int64_t)item && row->to == (int64_t)item)
    memcpy(to, from, (size_t)row->extent * item);
  else if (item == 1)
    COPY_EACH(1);
  else if (item == 2)
    COPY_EACH(2);
  else if (item == 4)
    COPY_EACH(4);
  else
    COPY_EACH(item);
}

static void copy_elements(unsigned char *to, const unsigned char *from, const axis *axes,
                          int64_t rank, size_t item) {
  if (!rank) {
    memcpy(to, from, item);
    return;
  }
  if (rank == 1) {
    copy_row(to, from, axes, item);
    return;
  }
  for (int64_t i = 0; i < axes->extent; i++)
    copy_elements(to + i * axes->to, from + i * axes->from, axes + 1, rank - 1, item);
}

typedef struct {
  magweld_model *model;
  const form *form;
  const magweld_tensor *inputs;
  magweld_tensor *outputs;
  unsigned char **data;  /* of inputs, then outputs */
  unsigned char *copied; /* for each input, then output: whether `data` is ours */
  unsigned char *frame;
} run;

static bool has_shape(const magweld_tensor *tensor, const int64_t *shape) {
  if (tensor->rank != shape[0]) return false;
  for (int32_t i = 0; i < tensor->rank; i++)
    if (tensor->shape[i] != shape[1 + i]) return false;
  return true;
}

static const form *find_form(const magweld_model *m, const magweld_tensor *inputs) {
  for (size_t i = 0; i < m->form_count; i++) {
    size_t same = 0;
    while (same < m->input_count &&
           has_shape(&inputs[same], shape_of(m, &m->forms[i], false, same)))
      same++;
    if (same == m->input_count) return &m->forms[i];
  }
  return NULL;
}

/* Appends to the text of an error, which ends in dots where it does not fit. */
static void append(magweld_error *error, const char *format, ...) {
  size_t used = strlen(error->text), left = sizeof error->text - used;
  va_list arguments;
  va_start(arguments, format);
  int wanted = vsnprintf(error->text + used, left, format, arguments);
  va_end(arguments);
  if (wanted < 0 || (size_t)wanted >= left)
    memcpy(error->text + sizeof error->text - 4, "...", 4);
}

static void append_shape(magweld_error *error, int64_t rank, const int64_t *extents) {
  if (rank < 0 || rank > MAGWELD_MAX_RANK) {
    append(error, " (of %lld dimensions)", (long long)rank);
    return;
  }
  append(error, " (");
  for (int64_t axis = 0; axis < rank; axis++)
    append(error, axis ? ", %lld" : "%lld", (long long)extents[axis]);
  append(error, ")");
}

/* The least and the largest extents of an input; of several ranks those of the first. */
static void append_ranges(const magweld_model *m, size_t input, magweld_error *error) {
  int64_t rank = shape_of(m, &m->forms[0], false, input)[0];
  append(error, " (");
  for (int64_t axis = 1; axis <= rank; axis++) {
    int64_t least = LIMIT, most = 0;
    for (size_t f = 0; f < m->form_count; f++) {
      const int64_t *shape = shape_of(m, &m->forms[f], false, input);
      if (shape[0] != rank) continue;
      if (shape[axis] < least) least = shape[axis];
      if (shape[axis] > most) most = shape[axis];
    }
    append(error, axis > 1 ? ", %lld" : "%lld", (long long)least);
    if (least != most) append(error, "..%lld", (long long)most);
  }
  append(error, ")");
}

static magweld_status fail_for_shapes(const magweld_model *m, const magweld_tensor *inputs,
                                      magweld_error *error) {
  magweld_status status =
      fail(error, MAGWELD_ERROR_INPUT, "the model takes no inputs of these shapes:");
  if (!error) return status;
  for (size_t i = 0; i < m->input_count; i++)
    append_shape(error, inputs[i].rank, inputs[i].shape);
  append(error, "; it takes");
  if (m->form_count > LISTED_FORMS) {
    append(error, " %zu kinds of shapes, within", m->form_count);
    for (size_t i = 0; i < m->input_count; i++) append_ranges(m, i, error);
    return status;
  }
  for (size_t f = 0; f < m->form_count; f++) {
    if (f) append(error, " or");
    for (size_t i = 0; i < m->input_count; i++) {
      const int64_t *shape = shape_of(m, &m->forms[f], false, i);
      append_shape(error, shape[0], shape + 1);
    }
  }
  return status;
}

static magweld_status check_inputs(run *r, magweld_error *error) {
  const magweld_model *m = r->model;
  for (size_t i = 0; i < m->input_count; i++)
    if (r->inputs[i].dtype != m->ports[i].dtype)
      return fail(error, MAGWELD_ERROR_INPUT, "input '%s' has type %d (%s), expected %s",
                  m->ports[i].name, (int)r->inputs[i].dtype,
                  dtype_name(r->inputs[i].dtype), dtype_name(m->ports[i].dtype));
  r->form = find_form(m, r->inputs);
  if (!r->form) return fail_for_shapes(m, r->inputs, error);
  for (size_t i = 0; i < m->input_count; i++)
    if (!r->inputs[i].data && tensor_bytes(m, r->form, false, i))
      return fail(error, MAGWELD_ERROR_INPUT, "input '%s' has no data",
                  m->ports[i].name);
  return MAGWELD_OK;
}

/* Finds the elements of an input row by row, in a copy if they are not so. */
static magweld_status place_input(run *r, size_t number, magweld_error *error) {
  const magweld_tensor *given = &r->inputs[number];
  size_t item = magweld_item_size(given->dtype);
  int64_t bytes = tensor_bytes(r->model, r->form, false, number);
  bool plain = (uintptr_t)given->data % item == 0;
  axis axes[MAGWELD_MAX_RANK];
  magweld_tensor expected;
  describe(r->model, r->form, false, number, &expected);
  for (int32_t i = 0; i < given->rank; i++) {
    /* Along an axis of one element nothing is stepped: its stride may be any number. */
    int64_t step = given->shape[i] > 1 ? given->strides[i] * (int64_t)item : 0;
    axes[i] = (axis){given->shape[i], step, expected.strides[i] * (int64_t)item};
    plain &= given->shape[i] == 1 || given->strides[i] == expected.strides[i];
  }
  r->data[number] = given->data;
  if (plain || !bytes) return MAGWELD_OK;
  r->data[number] = aligned_memory((size_t)bytes);
  if (!r->data[number]) return no_memory(error);
  r->copied[number] = 1;
  copy_elements(r->data[number], given->data, axes, given->rank, item);
  return MAGWELD_OK;
}

static bool overlap(const unsigned char *a, int64_t a_bytes, const unsigned char *b,
                    int64_t b_bytes) {
  uintptr_t p = (uintptr_t)a, q = (uintptr_t)b;
  return a_bytes && b_bytes && p < q + (uintptr_t)b_bytes && q < p + (uintptr_t)a_bytes;
}

static magweld_status fail_for_output(const char *name, const magweld_tensor *given,
                                      const magweld_tensor *expected,
                                      magweld_error *error) {
  magweld_status status =
      fail(error, MAGWELD_ERROR_OUTPUT, "output '%s' has another type or shape, %s", name,
           dtype_name(given->dtype));
  if (!error) return status;
  append_shape(error, given->rank, given->shape);
  append(error, "; expected %s", dtype_name(expected->dtype));
  append_shape(error, expected->rank, expected->shape);
  return status;
}

static magweld_status place_output(run *r, size_t number, magweld_error *error) {
  const magweld_model *m = r->model;
  magweld_tensor *given = &r->outputs[number], expected;
  size_t at = m->input_count + number;
  const char *name = m->ports[at].name;
  int64_t bytes = tensor_bytes(m, r->form, true, number);
  describe(m, r->form, true, number, &expected);
  r->data[at] = given->data;
  if (!given->data) {
    r->data[at] = aligned_memory((size_t)bytes);
    if (!r->data[at]) return no_memory(error);
    r->copied[at] = 1;
    return MAGWELD_OK;
  }
  if (given->dtype != expected.dtype ||
      !has_shape(given, shape_of(m, r->form, true, number)))
    return fail_for_output(name, given, &expected, error);
  if ((uintptr_t)given->data % magweld_item_size(given->dtype))
    return fail(error, MAGWELD_ERROR_OUTPUT, "output '%s' is not aligned", name);
  for (int32_t i = 0; i < given->rank; i++)
    if (given->shape[i] > 1 && given->strides[i] != expected.strides[i])
      return fail(error, MAGWELD_ERROR_OUTPUT, "output '%s' is not row-major", name);
  for (size_t other = 0; other < at; other++) {
    bool output = other >= m->input_count;
    int64_t size =
        tensor_bytes(m, r->form, output, output ? other - m->input_count : other);
    if (overlap(r->data[at], bytes, r->data[other], size))
      return fail(error, MAGWELD_ERROR_OUTPUT, "output '%s' shares memory with '%s'",
                  name, m->ports[other].name);
  }
  return MAGWELD_OK;
}

/* Takes a frame that no run uses, or makes one. Nobody waits for the lock: where a process
 * forked, the thread that held it may have stayed behind. */
static unsigned char *take_frame(magweld_model *m, size_t bytes) {
  unsigned char *found = NULL;
  if (pthread_mutex_trylock(&m->lock) == 0) {
    for (int i = 0; i < IDLE_FRAMES && !found; i++)
      if (m->frames[i] && m->frame_sizes[i] >= bytes) {
        found = m->frames[i];
        m->frames[i] = NULL;
      }
    pthread_mutex_unlock(&m->lock);
  }
  if (found) return found;
  /* The size is in front of it: a frame goes back as one of that size. */
  unsigned char *memory = aligned_memory(bytes + ALIGNMENT);
  if (memory) memcpy(memory, &bytes, sizeof bytes);
  return memory;
}

/* Puts a frame back in place of the smallest that is kept. */
static void give_frame(magweld_model *m, unsigned char *frame) {
  size_t bytes;
  int least = 0;
  void *dropped = frame;
  memcpy(&bytes, frame, sizeof bytes);
  if (pthread_mutex_trylock(&m->lock) == 0) {
    for (int i = 0; i < IDLE_FRAMES; i++) {
      if (!m->frames[i]) m->frame_sizes[i] = 0;
      if (m->frame_sizes[i] < m->frame_sizes[least]) least = i;
    }
    if (!m->frames[least] || m->frame_sizes[least] < bytes) {
      dropped = m->frames[least];
      m->frames[least] = frame;
      m->frame_sizes[least] = bytes;
    }
    pthread_mutex_unlock(&m->lock);
  }
  free(dropped);
}

static unsigned char *address_of(const run *r, const int64_t *place) {
  switch (place[0]) {
    case RUNTIME: return (unsigned char *)r->model->pool;
    case INPUT: return r->data[place[1]] + place[2];
    case OUTPUT: return r->data[r->model->input_count + (size_t)place[1]] + place[2];
    case FRAME: return r->frame + ALIGNMENT + place[2];
    case DATA: return r->model->file + place[2];
    default: return NULL;
  }
}

static magweld_status execute(run *r, magweld_error *error) {
  const form *f = r->form;
  size_t frame = (size_t)f->frame_bytes / ALIGNMENT * ALIGNMENT + 2 * ALIGNMENT;
  r->frame = take_frame(r->model, frame + (size_t)f->table_count * sizeof(void *));
  if (!r->frame) return no_memory(error);
  void **table = (void **)(void *)(r->frame + frame);
  for (int64_t i = 0; i < f->table_count; i++)
    table[i] = address_of(r, f->table + i * PLACE_WORDS);
  const image *code = &r->model->images[f->code];
  entry_function *entry = (entry_function *)(uintptr_t)(code->memory + f->entry);
  int64_t failure = entry(table);
  if (failure)
    return fail(error, MAGWELD_ERROR_INDEX, "%s",
                failure > 0 && (size_t)failure <= r->model->failure_count
                    ? r->model->failures[failure - 1]
                    : "the code fails");
  const int64_t *copy = f->copies;
  for (int64_t i = 0; i < f->copy_count; i++) {
    const int64_t *words = copy + COPY_WORDS;
    axis axes[MAGWELD_MAX_RANK];
    int64_t elements = 1;
    for (int64_t k = 0; k < copy[7]; k++, words += AXIS_WORDS) {
      axes[k] = (axis){words[0], words[1], words[2]};
      elements *= words[0] != 0;
    }
    if (elements)
      copy_elements(address_of(r, copy + PLACE_WORDS), address_of(r, copy), axes,
                    copy[7], (size_t)copy[6]);
    copy = words;
  }
  return MAGWELD_OK;
}

/* Frees what belongs to a run; outputs as well unless they are handed to the caller. */
static void finish(run *r, bool failed) {
  const magweld_model *m = r->model;
  if (r->frame) give_frame(r->model, r->frame);
  for (size_t i = 0; i < m->input_count; i++)
    if (r->copied[i]) free(r->data[i]);
  for (size_t i = 0; i < m->output_count; i++) {
    size_t at = m->input_count + i;
    if (failed) {
      if (r->copied[at]) free(r->data[at]);
      continue;
    }
    describe(m, r->form, true, i, &r->outputs[i]);
    r->outputs[i].data = r->data[at];
  }
}

magweld_status magweld_run(magweld_model *m, const magweld_tensor *inputs,
                           magweld_tensor *outputs, magweld_error *error) {
  if (!m || (!inputs && m->input_count) || (!outputs && m->output_count))
    return fail(error, MAGWELD_ERROR_ARGUMENT, "a null pointer");
  size_t count = m->input_count + m->output_count;
  run r = {m, NULL, inputs, outputs, calloc(count + 1, sizeof(void *)),
           calloc(count + 1, 1), NULL};
  magweld_status status = r.data && r.copied ? check_inputs(&r, error) : no_memory(error);
  for (size_t i = 0; !status && i < m->input_count; i++)
    status = place_input(&r, i, error);
  for (size_t i = 0; !status && i < m->output_count; i++)
    status = place_output(&r, i, error);
  if (!status) status = execute(&r, error);
  if (r.data && r.copied) finish(&r, status != MAGWELD_OK);
  free(r.data);
  free(r.copied);
  return status ? status : succeed(error);
}

void magweld_release(magweld_tensor *output) {
  if (!output) return;
  free(output->data);
  output->data = NULL;
}
