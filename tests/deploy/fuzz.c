/* Loads damaged artifacts: each must give an error, or results equal to the intact one's.
 *
 *   fuzz ARTIFACT COUNT
 *
 * Every second damaged file has a digest that fits it, so that what is behind the check
 * of the digest is tested as well. Such a file is only loaded and looked at: its machine
 * code, or what that relies on, may be damaged. */
#include "magweld.c"

static uint64_t state = 1;

static uint64_t random_number(uint64_t end) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state % end;
}

static int same_results(magweld_model *model, magweld_tensor *wanted, int compare) {
  size_t inputs = magweld_input_count(model), outputs = magweld_output_count(model);
  magweld_tensor given[16] = {0}, found[16] = {0};
  for (size_t i = 0; i < inputs; i++) {
    magweld_describe_input(model, 0, i, &given[i]);
    size_t bytes = (size_t)(given[i].rank ? given[i].shape[0] * given[i].strides[0] : 1) *
                   magweld_item_size(given[i].dtype);
    given[i].data = calloc(bytes + 1, 1);
  }
  int same = magweld_run(model, given, found, NULL) == MAGWELD_OK;
  for (size_t i = 0; i < inputs; i++) free(given[i].data);
  for (size_t i = 0; same && i < outputs; i++) {
    size_t bytes = (size_t)(found[i].rank ? found[i].shape[0] * found[i].strides[0] : 1) *
                   magweld_item_size(found[i].dtype);
    if (compare) {
      same &= memcmp(found[i].data, wanted[i].data, bytes) == 0;
      magweld_release(&found[i]);
    } else {
      wanted[i] = found[i];
    }
  }
  return same;
}

static void look_at(const magweld_model *model) {
  magweld_tensor described;
  for (size_t f = 0; f < magweld_form_count(model); f++) {
    for (size_t i = 0; i < magweld_input_count(model); i++)
      magweld_describe_input(model, f, i, &described);
    for (size_t i = 0; i < magweld_output_count(model); i++)
      magweld_describe_output(model, f, i, &described);
  }
}

/* Runs a model on inputs of ranks, or of extents, that no program has. */
static int refuses_shapes(magweld_model *model) {
  static const int32_t ranks[] = {-1, 9, 1 << 30, 8};
  magweld_tensor given[16] = {0}, found[16] = {0};
  size_t inputs = magweld_input_count(model);
  if (!inputs || inputs > 16 || magweld_output_count(model) > 16) return 1;
  for (size_t n = 0; n < 4; n++) {
    for (size_t i = 0; i < inputs; i++) {
      magweld_describe_input(model, 0, i, &given[i]);
      given[i].rank = ranks[n];
      for (size_t axis = 0; axis < 8; axis++) given[i].shape[axis] = INT64_MIN;
    }
    magweld_error error = {MAGWELD_OK, ""};
    if (magweld_run(model, given, found, NULL) != MAGWELD_ERROR_INPUT) return 0;
    if (magweld_run(model, given, found, &error) != MAGWELD_ERROR_INPUT) return 0;
    if (!memchr(error.text, 0, sizeof error.text) || !strstr(error.text, "shapes: ("))
      return 0;
  }
  return 1;
}

/* Damages a copy of a file; returns its length. Most damage is in the description. */
static size_t damage(unsigned char *file, size_t count, int sealed) {
  uint64_t words;
  memcpy(&words, file + 24, 8);
  switch (random_number(4)) {
    case 0: count = random_number(count); break;
    case 1: file[random_number(count)] ^= (unsigned char)(1 + random_number(255)); break;
    default:
      for (uint64_t n = 1 + random_number(3); n--;) {
        uint64_t at = HEADER_BYTES + random_number(words / 8) * 8;
        static const uint64_t odd[] = {0, 1, 8, 0x7fffffff, 1ull << 47, ~0ull, 1ull << 63};
        uint64_t value = random_number(2) ? odd[random_number(7)] : random_number(5000);
        memcpy(file + at, &value, 8);
      }
  }
  if (sealed && count >= HEADER_BYTES) {
    uint64_t length = count;
    memcpy(file + 16, &length, 8);
    digest_of(file, count, file + 32);
  }
  return count;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  FILE *stream = fopen(argv[1], "rb");
  if (!stream) return 2;
  fseek(stream, 0, SEEK_END);
  size_t count = (size_t)ftell(stream);
  rewind(stream);
  unsigned char *intact = malloc(count), *file = malloc(count);
  if (!intact || !file || fread(intact, 1, count, stream) != count) return 2;
  fclose(stream);
  magweld_options options = {1, 0};
  magweld_model *model;
  magweld_tensor wanted[16];
  if (magweld_load_bytes(intact, count, &options, &model, NULL)) return 3;
  if (!same_results(model, wanted, 0)) return 3;
  size_t outputs = magweld_output_count(model), loaded = 0;
  magweld_free(model);
  for (long n = 0; n < atol(argv[2]); n++) {
    magweld_error error = {MAGWELD_OK, ""};
    int sealed = n % 2;
    memcpy(file, intact, count);
    size_t length = damage(file, count, sealed);
    magweld_status status = magweld_load_bytes(file, length, &options, &model, &error);
    if (status != error.status || (status && !error.text[0]) || !status != !!model)
      return 4;
    if (status) continue;
    loaded++;
    look_at(model);
    if (!refuses_shapes(model)) return 6;
    if (!sealed && !same_results(model, wanted, 1)) return 5;
    magweld_free(model);
  }
  for (size_t i = 0; i < outputs; i++) magweld_release(&wanted[i]);
  free(intact);
  free(file);
  printf("%zu loaded\n", loaded);
  return 0;
}
