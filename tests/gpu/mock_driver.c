/* A driver for GPUs without a GPU: the functions of CUDA and HIP that programs use.
 * What is launched is handed to a callback, if there is one; any function can be made to fail. */
#include <stdlib.h>
#include <string.h>

typedef void (*launch_callback)(const char *kernel, const unsigned *extents,
                                unsigned shared_bytes, void *stream, void **parameters);
struct module { size_t bytes; char *code; };
struct function { struct module *module; char name[128]; unsigned shared_limit; };

static launch_callback on_launch;
static char failing[64];
static int failing_code;
static int loaded, unloaded, mapped;

void mock_reset(launch_callback callback) {
  on_launch = callback;
  failing[0] = 0;
  loaded = unloaded = mapped = 0;
}
void mock_fail(const char *function, int code) {
  strncpy(failing, function, sizeof failing - 1);
  failing_code = code;
}
int mock_loaded(void) { return loaded; }
int mock_unloaded(void) { return unloaded; }

static int outcome(const char *function) {
  return strcmp(failing, function) ? 0 : failing_code;
}

static int load(void **module, const void *image, unsigned count, int *options,
                void **values) {
  struct module *made;
  if (outcome("load")) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == 5) strcpy(values[i], "line 7: syntax error");
    return outcome("load");
  }
  /* Machine code is an ELF file, assembly is text that ends with a zero. */
  if (outcome("load_binary") && !memcmp(image, "\177ELF", 4))
    return outcome("load_binary");
  made = malloc(sizeof *made);
  *module = made;
  ++loaded;
  return 0;
}
static int get_function(void **function, void *module, const char *name) {
  struct function *made = malloc(sizeof *made);
  if (outcome("function")) return outcome("function");
  made->module = module;
  made->shared_limit = 48 * 1024;
  strncpy(made->name, name, sizeof made->name - 1);
  *function = made;
  return 0;
}
/* A tensor map: where the tensor lies, and what else is said of it. */
struct map {
  void *address;
  unsigned type, rank, swizzle;
  unsigned long long extents[3], strides[2];
  unsigned box[3], promotion;
};
static struct map maps[16];

int mock_mapped(void) { return mapped; }
const struct map *mock_map(int number) { return &maps[number]; }

int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address,
                           const unsigned long long *extents,
                           const unsigned long long *strides, const unsigned *box,
                           const unsigned *steps, int interleave, int swizzle,
                           int promotion, int fill) {
  struct map made = {address, type, rank, swizzle};
  if (outcome("tensor_map")) return outcome("tensor_map");
  if ((size_t)map % 64 || (size_t)address % 16 || rank > 3 || interleave || fill)
    return 1;
  for (unsigned i = 0; i < rank; ++i) {
    if (steps[i] != 1 || box[i] < 1 || box[i] > 256 || extents[i] < 1) return 1;
    if (i && strides[i - 1] % 16) return 1;
    made.extents[i] = extents[i];
    made.box[i] = box[i];
    if (i) made.strides[i - 1] = strides[i - 1];
  }
  made.promotion = promotion;
  memcpy(map, &made, sizeof made);
  maps[mapped++ % 16] = made;
  return 0;
}
static int launch(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                  unsigned by, unsigned bz, unsigned shared_bytes, void *stream,
                  void **parameters, void **extra) {
  struct function *kernel = function;
  unsigned extents[6] = {gx, gy, gz, bx, by, bz};
  if (outcome("launch")) return outcome("launch");
  if (extra || shared_bytes > kernel->shared_limit) return 1;
  if (on_launch) on_launch(kernel->name, extents, shared_bytes, stream, parameters);
  return 0;
}

int cuModuleLoadDataEx(void **m, const void *i, unsigned n, int *o, void **v) {
  return load(m, i, n, o, v);
}
int cuModuleGetFunction(void **f, void *m, const char *n) { return get_function(f, m, n); }
int cuFuncSetAttribute(void *function, int attribute, int value) {
  if (attribute != 8) return 1;
  ((struct function *)function)->shared_limit = value;
  return outcome("attribute");
}
int cuLaunchKernel(void *f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e,
                   unsigned g, unsigned s, void *stream, void **p, void **extra) {
  return launch(f, a, b, c, d, e, g, s, stream, p, extra);
}
int cuStreamSynchronize(void *stream) { return outcome("synchronize"); }
int cuModuleUnload(void *module) { ++unloaded; free(module); return outcome("unload"); }
int cuGetErrorName(int code, const char **text) {
  *text = code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER";
  return 0;
}
int cuGetErrorString(int code, const char **text) {
  *text = code == 700 ? "an illegal memory access was encountered" : "another error";
  return 0;
}

int hipModuleLoadDataEx(void **m, const void *i, unsigned n, int *o, void **v) {
  return load(m, i, n, o, v);
}
int hipModuleGetFunction(void **f, void *m, const char *n) { return get_function(f, m, n); }
int hipModuleLaunchKernel(void *f, unsigned a, unsigned b, unsigned c, unsigned d,
                          unsigned e, unsigned g, unsigned s, void *stream, void **p,
                          void **extra) {
  /* All shared memory of a block may be used without asking. */
  ((struct function *)f)->shared_limit = 64 * 1024;
  return launch(f, a, b, c, d, e, g, s, stream, p, extra);
}
int hipStreamSynchronize(void *stream) { return outcome("synchronize"); }
int hipModuleUnload(void *module) { ++unloaded; free(module); return outcome("unload"); }
int hipDrvGetErrorName(int code, const char **text) { *text = "hipErrorOther"; return 0; }
int hipDrvGetErrorString(int code, const char **text) { *text = "another"; return 0; }
