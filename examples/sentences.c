/* Sentence embeddings without Python: see sentences_in_c.py, which makes the files.
 *
 *   cc -std=c11 -O2 -I RUNTIME sentences.c RUNTIME/magweld.c -o sentences -lm -pthread
 *   ./sentences minilm.mwp tokens.bin embeddings.bin */
#include <stdio.h>
#include <stdlib.h>
#include "magweld.h"

int main(int argc, char **argv) {
  magweld_model *model;
  magweld_error error;
  magweld_tensor inputs[2], output = {0}; /* input_ids, attention_mask */
  if (argc != 4) return fprintf(stderr, "usage: sentences MODEL TOKENS RESULT\n"), 2;
  if (magweld_load(argv[1], NULL, &model, &error))
    return fprintf(stderr, "%s\n", error.text), 1;
  FILE *tokens = fopen(argv[2], "rb"), *result = fopen(argv[3], "wb");
  if (!tokens || !result) return perror("cannot open TOKENS or RESULT"), 1;
  for (size_t i = 0; i < 2; i++) {
    magweld_describe_input(model, 0, i, &inputs[i]);
    size_t count = (size_t)(inputs[i].shape[0] * inputs[i].shape[1]);
    inputs[i].data = malloc(count * sizeof(int64_t));
    if (fread(inputs[i].data, sizeof(int64_t), count, tokens) != count) return 1;
  }
  if (magweld_run(model, inputs, &output, &error))
    return fprintf(stderr, "%s\n", error.text), 1;
  size_t count = (size_t)(output.shape[0] * output.shape[1]);
  if (fwrite(output.data, sizeof(float), count, result) != count) return 1;
  printf("%lld sentences, x86-64-v%d\n", (long long)output.shape[0], magweld_level(model));
  for (int i = 0; i < 2; i++) free(inputs[i].data);
  magweld_release(&output);
  magweld_free(model);
  return fclose(tokens) || fclose(result);
}
