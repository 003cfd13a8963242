// A client as Huawei's own are: plain C, every name of the ABI looked up before anything is called.
#include <dlfcn.h>
#include <stdio.h>

#include "vnpu/dcmi/abi.h"

static const char* const kNames[] = {
#define ASCEND_TYPED_NAME(name, parameters) #name,
    ASCEND_DCMI_V1_FUNCTIONS(ASCEND_TYPED_NAME) ASCEND_DCMI_V2_FUNCTIONS(ASCEND_TYPED_NAME)
#undef ASCEND_TYPED_NAME
#define ASCEND_UNTYPED_NAME(name) #name,
        ASCEND_DCMI_UNTYPED_FUNCTIONS(ASCEND_UNTYPED_NAME)
#undef ASCEND_UNTYPED_NAME
};

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* const library = dlopen(argv[1], RTLD_LAZY | RTLD_GLOBAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  int missing = 0;
  for (size_t i = 0; i < sizeof(kNames) / sizeof(kNames[0]); ++i) {
    if (dlsym(library, kNames[i]) != NULL) continue;
    fprintf(stderr, "no %s\n", kNames[i]);
    ++missing;
  }
  if (missing != 0) return 1;
  dcmi_init_fn init = (dcmi_init_fn)dlsym(library, "dcmi_init");
  dcmi_get_all_device_count_fn count_of =
      (dcmi_get_all_device_count_fn)dlsym(library, "dcmi_get_all_device_count");
  int count = 0;
  if (init() != DCMI_OK || count_of(&count) != DCMI_OK) {
    fprintf(stderr, "the library does not start\n");
    return 1;
  }
  printf("%zu names, %d chips\n", sizeof(kNames) / sizeof(kNames[0]), count);
  return count == 8 ? 0 : 1;
}
