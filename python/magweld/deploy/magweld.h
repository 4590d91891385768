/* Runs portable artifacts of magweld: neither Python nor torch nor LLVM is needed.
 *
 *   cc -std=c11 -O2 main.c magweld.c -lm -pthread
 *
 * Every function may be called from any thread; magweld_free and magweld_release take
 * what nobody uses any more. There is no global state. Where a process forks, the threads
 * of a model stay behind: in the child it runs with the caller's alone, results are the
 * same, and a model that is loaded there has threads of its own. */
#ifndef MAGWELD_H
#define MAGWELD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MAGWELD_MAX_RANK 8

typedef enum magweld_status {
  MAGWELD_OK = 0,
  MAGWELD_ERROR_ARGUMENT,  /* a null pointer, or a number out of range */
  MAGWELD_ERROR_FILE,      /* the file cannot be read */
  MAGWELD_ERROR_DAMAGED,   /* it is no intact portable artifact */
  MAGWELD_ERROR_VERSION,   /* it has a format that this runtime does not know */
  MAGWELD_ERROR_CPU,       /* it has no code for this CPU */
  MAGWELD_ERROR_MEMORY,    /* there is no memory, or no thread */
  MAGWELD_ERROR_INPUT,     /* an input has another type or shape */
  MAGWELD_ERROR_OUTPUT,    /* an output has, or shares memory with another tensor */
  MAGWELD_ERROR_INDEX,     /* an element that is used as an index is out of range */
  MAGWELD_ERROR_UNSIGNED,  /* the artifact has no signature */
  MAGWELD_ERROR_SIGNATURE, /* the signature is none of the artifact by the key */
  MAGWELD_ERROR_KEY,       /* the key is no public Ed25519 key as PEM */
  MAGWELD_ERROR_LIBRARY    /* signatures cannot be checked: libcrypto is missing */
} magweld_status;

typedef struct magweld_error {
  magweld_status status;
  char text[256];
} magweld_error;

typedef enum magweld_dtype {
  MAGWELD_FLOAT32 = 1,
  MAGWELD_FLOAT64,
  MAGWELD_FLOAT16,
  MAGWELD_BFLOAT16,
  MAGWELD_INT64,
  MAGWELD_INT32,
  MAGWELD_INT16,
  MAGWELD_INT8,
  MAGWELD_UINT8,
  MAGWELD_BOOL, /* one byte, 0 or 1 */
  MAGWELD_UINT16,
  MAGWELD_UINT32,
  MAGWELD_UINT64,
  MAGWELD_COMPLEX64
} magweld_dtype;

typedef struct magweld_tensor {
  void *data;
  magweld_dtype dtype;
  int32_t rank;
  int64_t shape[MAGWELD_MAX_RANK];
  int64_t strides[MAGWELD_MAX_RANK]; /* in elements; they may be zero or negative */
} magweld_tensor;

typedef struct magweld_options {
  int32_t threads; /* that a run uses; 0 is one for each CPU of the process */
  int32_t level;   /* highest level of x86-64 that is used; 0 is what the CPU has */
} magweld_options;

typedef struct magweld_model magweld_model;

/* Loads an artifact. `options` and `error` may be null. On an error *model is null. */
magweld_status magweld_load(const char *path, const magweld_options *options,
                            magweld_model **model, magweld_error *error);

/* The same from memory, which is copied. */
magweld_status magweld_load_bytes(const void *bytes, size_t count,
                                  const magweld_options *options,
                                  magweld_model **model, magweld_error *error);

/* Loads an artifact that the owner of a key has signed. `public_key` is the path of a
 * file with an Ed25519 key as PEM; the signature is in the file beside the artifact that
 * has ".sig" behind its name. What is checked is the memory that is loaded, before
 * anything else in it is looked at.
 *
 * OpenSSL's libcrypto, 1.1.1 or newer, does it. It is opened when it is needed, stays
 * open, and is nothing to link with; glibc before 2.34 needs -Wl,--no-as-needed -ldl.
 * A signature that cannot be checked is an error. */
magweld_status magweld_load_verified(const char *path, const char *public_key,
                                     const magweld_options *options,
                                     magweld_model **model, magweld_error *error);

/* The same from memory, which is copied; `public_key` is the text of the PEM. */
magweld_status magweld_load_bytes_verified(const void *bytes, size_t count,
                                           const void *signature, size_t signature_count,
                                           const char *public_key,
                                           const magweld_options *options,
                                           magweld_model **model, magweld_error *error);

void magweld_free(magweld_model *model);

/* Runs the model on as many inputs as it takes. They may have any strides.
 *
 * An output whose data is null is allocated: magweld_release frees it. Other outputs are
 * row-major memory of the caller, of the right type and shape, that is part of no other
 * tensor of the call. On an error no output is allocated. */
magweld_status magweld_run(magweld_model *model, const magweld_tensor *inputs,
                           magweld_tensor *outputs, magweld_error *error);

/* Frees an output that magweld_run has allocated. */
void magweld_release(magweld_tensor *output);

size_t magweld_input_count(const magweld_model *model);
size_t magweld_output_count(const magweld_model *model);

/* The names of inputs and outputs; null if there is no such one. */
const char *magweld_input_name(const magweld_model *model, size_t input);
const char *magweld_output_name(const magweld_model *model, size_t output);

/* How many sets of input shapes the model takes, and the tensors of one of these:
 * type, shape and row-major strides, without data. */
size_t magweld_form_count(const magweld_model *model);
magweld_status magweld_describe_input(const magweld_model *model, size_t form,
                                      size_t input, magweld_tensor *described);
magweld_status magweld_describe_output(const magweld_model *model, size_t form,
                                       size_t output, magweld_tensor *described);

/* The level of x86-64 whose code runs: 3 or 4. */
int magweld_level(const magweld_model *model);

/* Bytes of an element; 0 for what is no type. */
size_t magweld_item_size(magweld_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
