/* Stands for a libcrypto that does not check signatures: it reads any key, and answers
 * as the environment says. */
#include <stdlib.h>
#include <string.h>

static int answer(const char *name) { return atoi(getenv(name)); }

int ERR_set_mark(void) { return 1; }
int ERR_pop_to_mark(void) { return 1; }
void *BIO_new_mem_buf(const void *bytes, int count) {
  return count ? (void *)(size_t)bytes : NULL;
}
int BIO_free(void *reader) { return reader != NULL; }
void CRYPTO_free(void *memory, const char *file, int line) {
  (void)file, (void)line;
  free(memory);
}

int PEM_read_bio(void *reader, char **name, char **header, unsigned char **data,
                 long *count) {
  static const unsigned char start[] = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
                                        0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};
  static const char kind[] = "PUBLIC KEY";
  *count = sizeof start + 32;
  *name = malloc(sizeof kind);
  *header = calloc(1, 1);
  *data = calloc(1, (size_t)*count);
  if (!reader || !*name || !*header || !*data) abort();
  memcpy(*name, kind, sizeof kind);
  memcpy(*data, start, sizeof start);
  return 1;
}

void *EVP_PKEY_new_raw_public_key(int kind, void *engine, const unsigned char *bytes,
                                  size_t count) {
  static int key;
  return !engine && bytes && kind == 1087 && count == 32 && answer("KEY") ? &key : NULL;
}
void EVP_PKEY_free(void *key) { (void)key; }
void *EVP_MD_CTX_new(void) {
  static int context;
  return answer("CONTEXT") ? &context : NULL;
}
void EVP_MD_CTX_free(void *context) { (void)context; }

int EVP_DigestVerifyInit(void *context, void **inner, const void *digest, void *engine,
                         void *key) {
  return context && key && !inner && !digest && !engine ? answer("BEGIN") : 0;
}

int EVP_DigestVerify(void *context, const unsigned char *signature,
                     size_t signature_count, const unsigned char *bytes, size_t count) {
  return context && signature && signature_count == 64 && bytes && count
             ? answer("VERIFY")
             : 0;
}
