// The life of a plugin in some twenty calls: two starts, and every way to prepare and unprepare.
#ifndef ASCEND_DRA_TEST_FAULT_SCENARIO_H_
#define ASCEND_DRA_TEST_FAULT_SCENARIO_H_

#include "test/fault/claims_node.h"

namespace ascend::fault {

// What may be expected of the calls.
enum class Trouble {
  kNone,     // every call succeeds at once (the refused one apart)
  kOneCall,  // one system call fails: an operation may fail once, and succeeds when tried again
  kClock,    // none, but calls have to wait for something, as long as they say
  kFull,     // the disk is full from some point on, until all steps are done
};

// Runs it, says every answer (answers.h) and what is wrong with it. False if anything is.
bool RunScenario(ClaimsNode& node, Trouble trouble);

}  // namespace ascend::fault

#endif  // ASCEND_DRA_TEST_FAULT_SCENARIO_H_
