#include "vnpu/dcmi/library_calls.h"

#include <map>
#include <utility>

namespace ascend::dcmi {
namespace {

using ChipMutexes = std::map<std::pair<int, int>, Mutex>;

Mutex& Of(ChipMutexes& mutexes, ChipAddress chip) {
  static Mutex* const guard = new Mutex;
  MutexLock lock(guard);
  return mutexes[{chip.card, chip.device}];
}

}  // namespace

Mutex& NodeMutex() {
  static Mutex* const mutex = new Mutex;
  return *mutex;
}

Mutex& PairMutex() {
  static Mutex* const mutex = new Mutex;
  return *mutex;
}

Mutex& SubscriptionMutex() {
  static Mutex* const mutex = new Mutex;
  return *mutex;
}

Mutex& ChipMutex(ChipAddress chip) {
  static auto* const mutexes = new ChipMutexes;
  return Of(*mutexes, chip);
}

Mutex& NetworkMutex(ChipAddress chip) {
  static auto* const mutexes = new ChipMutexes;
  return Of(*mutexes, chip);
}

}  // namespace ascend::dcmi
