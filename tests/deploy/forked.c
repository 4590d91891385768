/* Runs an artifact with threads, and in children that it forks: results are equal.
 *
 *   forked ARTIFACT
 *
 * The first child forks where nothing runs, the second while another thread runs. */
#include "magweld.c"

#include <sys/wait.h>

enum { MOST = 16, SECONDS = 120 };

static magweld_tensor given[MOST];

static size_t bytes_of(const magweld_tensor *tensor) {
  size_t count = magweld_item_size(tensor->dtype);
  for (int32_t i = 0; i < tensor->rank; i++) count *= (size_t)tensor->shape[i];
  return count;
}

static int same_results(magweld_model *model, const magweld_tensor *wanted) {
  magweld_tensor found[MOST] = {0};
  if (magweld_run(model, given, found, NULL)) return 0;
  int same = 1;
  for (size_t i = 0; i < magweld_output_count(model); i++) {
    same &= memcmp(found[i].data, wanted[i].data, bytes_of(&found[i])) == 0;
    magweld_release(&found[i]);
  }
  return same;
}

static int child_agrees(magweld_model *model, const magweld_tensor *wanted) {
  pid_t child = fork();
  if (child == 0) {
    alarm(SECONDS);
    int same = same_results(model, wanted) && same_results(model, wanted);
    magweld_free(model);
    _exit(same ? 0 : 1);
  }
  int status;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static atomic_bool stop;

static void *keep_running(void *model) {
  magweld_tensor found[MOST] = {0};
  while (!atomic_load(&stop) && !magweld_run(model, given, found, NULL))
    for (size_t i = 0; i < magweld_output_count(model); i++) magweld_release(&found[i]);
  return NULL;
}

int main(int argc, char **argv) {
  magweld_options options = {3, 0};
  magweld_model *model;
  magweld_tensor wanted[MOST] = {0};
  pthread_t other;
  if (argc != 2 || magweld_load(argv[1], &options, &model, NULL)) return 2;
  for (size_t i = 0; i < magweld_input_count(model); i++) {
    magweld_describe_input(model, 0, i, &given[i]);
    given[i].data = calloc(bytes_of(&given[i]) + 1, 1);
  }
  if (magweld_run(model, given, wanted, NULL)) return 3;
  if (!child_agrees(model, wanted)) return 4;
  if (pthread_create(&other, NULL, keep_running, model)) return 5;
  int agreed = 1;
  for (int n = 0; n < 8; n++) agreed &= child_agrees(model, wanted);
  atomic_store(&stop, true);
  pthread_join(other, NULL);
  if (!agreed) return 6;
  if (!same_results(model, wanted)) return 7;
  for (size_t i = 0; i < magweld_input_count(model); i++) free(given[i].data);
  for (size_t i = 0; i < magweld_output_count(model); i++) magweld_release(&wanted[i]);
  magweld_free(model);
  return 0;
}
