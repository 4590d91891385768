/* Runs one kernel once, with cold caches, for benchmarks/traffic.py.
 *
 * Arguments: how often to run it, bytes to sweep through the caches before, then for
 * each operand its bytes and a file with its contents, "-" for zeros.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, OPERANDS = 256 };

void LAUNCH(int64_t *table);

static char *fresh(size_t bytes) {
  size_t whole = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  char *memory = aligned_alloc(ALIGNMENT, whole ? whole : ALIGNMENT);
  if (!memory) {
    perror("aligned_alloc");
    exit(1);
  }
  memset(memory, 0, whole);
  return memory;
}

static void read_into(char *memory, size_t bytes, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file || fread(memory, 1, bytes, file) != bytes) {
    perror(path);
    exit(1);
  }
  fclose(file);
}

int main(int count, char **arguments) {
  int64_t table[OPERANDS];
  if (count % 2 == 0 || (count - 3) / 2 > OPERANDS) {
    fprintf(stderr, "expected RUNS BYTES [BYTES FILE]...\n");
    return 1;
  }
  for (int i = 3; i < count; i += 2) {
    size_t bytes = strtoull(arguments[i], 0, 10);
    char *memory = fresh(bytes);
    if (strcmp(arguments[i + 1], "-"))
      read_into(memory, bytes, arguments[i + 1]);
    table[(i - 3) / 2] = (int64_t)memory;
  }
  /* What lies in the caches now is this. */
  fresh(strtoull(arguments[2], 0, 10));
  for (int run = atoi(arguments[1]); run > 0; run--)
    LAUNCH(table);
  return 0;
}
