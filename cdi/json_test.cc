#include "cdi/json.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/core/status_matchers.h"
#include "cdi/document.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::cdi {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A document with `edits` in its one device.
std::string WithEdits(absl::string_view edits) {
  return absl::StrCat(R"({"cdiVersion":"1.1.0","kind":"huawei.com/npu",)",
                      R"("devices":[{"name":"a","containerEdits":)", edits, "}]}");
}
std::string WithEnv(absl::string_view value) {
  return WithEdits(absl::StrCat(R"({"env":["A=)", value, "\"]}"));
}

Spec ClaimSpec() {
  Spec spec;
  spec.version = "ignored";
  spec.kind = "k8s.npu.huawei.com/claim";
  spec.container_edits.env = {"ASCEND_VISIBLE_DEVICES=void"};
  for (const char* name : {"b", "a"}) {
    ContainerEdits edits;
    edits.device_nodes = {{.path = absl::StrCat("/dev/", name),
                           .type = "c",
                           .major = 236,
                           .file_mode = 0660,
                           .gid = 0}};
    edits.mounts = {{.host_path = "/usr/local/dcmi",
                     .container_path = "/usr/local/dcmi",
                     .options = {"ro", "bind"}}};
    spec.devices.push_back({name, {}, edits});
  }
  return spec;
}

TEST(WriteJsonTest, ExactBytes) {
  Spec spec = ClaimSpec();
  spec.devices.pop_back();
  EXPECT_THAT(WriteJson(spec), IsOkAndHolds(R"({
  "cdiVersion": "0.3.0",
  "kind": "k8s.npu.huawei.com/claim",
  "devices": [
    {
      "name": "b",
      "containerEdits": {
        "deviceNodes": [
          {
            "path": "/dev/b",
            "type": "c",
            "major": 236,
            "fileMode": 432,
            "gid": 0
          }
        ],
        "mounts": [
          {
            "hostPath": "/usr/local/dcmi",
            "containerPath": "/usr/local/dcmi",
            "options": [
              "ro",
              "bind"
            ]
          }
        ]
      }
    }
  ],
  "containerEdits": {
    "env": [
      "ASCEND_VISIBLE_DEVICES=void"
    ]
  }
}
)"));
}

TEST(WriteJsonTest, ReadsBackInTheSameOrder) {
  Spec spec = ClaimSpec();
  const absl::StatusOr<std::string> text = WriteJson(spec);
  ASSERT_THAT(text, IsOk());
  spec.version = "0.3.0";
  EXPECT_THAT(ReadJson(*text), IsOkAndHolds(spec));
  EXPECT_THAT(WriteJson(spec), IsOkAndHolds(*text));
}

TEST(WriteJsonTest, ComputesTheVersion) {
  Spec spec = ClaimSpec();
  spec.devices[1].container_edits.device_nodes[0].host_path = "/dev/x";
  EXPECT_THAT(WriteJson(spec), IsOkAndHolds(HasSubstr("\"cdiVersion\": \"0.5.0\"")));
  spec.annotations["a"] = "b";
  EXPECT_THAT(WriteJson(spec), IsOkAndHolds(HasSubstr("\"cdiVersion\": \"0.6.0\"")));
}

TEST(WriteJsonTest, OmitsWhatIsEmpty) {
  Spec spec = ClaimSpec();
  spec.container_edits = {};
  const absl::StatusOr<std::string> text = WriteJson(spec);
  ASSERT_THAT(text, IsOk());
  for (const char* absent : {"null", "[]", "{}", "\"\"", "hostPath\": \"\"", "minor", "uid"}) {
    EXPECT_THAT(*text, Not(HasSubstr(absent)));
  }
}

TEST(WriteJsonTest, RefusesWhatBreaksThePolicy) {
  Spec spec = ClaimSpec();
  spec.devices[1].container_edits.mounts[0].host_path = "relative";
  EXPECT_THAT(WriteJson(spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith("devices[1].containerEdits.mounts[0].hostPath: ")));
}

TEST(WriteJsonTest, RefusesWhatIsTooLarge) {
  Spec spec = ClaimSpec();
  spec.container_edits.env[0].append(kMaxDocumentSize, 'x');
  EXPECT_THAT(WriteJson(spec), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("larger")));
}

TEST(WriteJsonTest, KeepsText) {
  Spec spec = ClaimSpec();
  spec.container_edits.env = {"A=\"\\/<>&' \xC3\xA9\xE2\x80\xA8\xF0\x9F\x98\x80"};
  const absl::StatusOr<std::string> text = WriteJson(spec);
  ASSERT_THAT(text, IsOk());
  EXPECT_THAT(*text, HasSubstr("A=\\\"\\\\/<>&' \xC3\xA9\xE2\x80\xA8\xF0\x9F\x98\x80\""));
  EXPECT_EQ(ReadJson(*text)->container_edits.env, spec.container_edits.env);
}

TEST(FormatJsonTest, EscapesControlCharactersAndNothingElse) {
  Spec spec;
  spec.version = "v0.3.0";
  spec.kind = std::string("\0\n\x1F \x7F\xC2\x80\xC2\x9F\xC2\xA0", 11);
  EXPECT_EQ(FormatJson(spec),
            "{\n  \"cdiVersion\": \"v0.3.0\",\n"
            "  \"kind\": \"\\u0000\\u000a\\u001f \\u007f\\u0080\\u009f\xC2\xA0\",\n"
            "  \"devices\": [],\n  \"containerEdits\": {}\n}\n");
}

TEST(FormatJsonTest, KeepsWhatTheReferenceKeeps) {
  Spec spec = ClaimSpec();
  ContainerEdits& edits = spec.container_edits;
  edits.hooks = {{.hook_name = "prestart", .path = "/x", .timeout = 0}};
  edits.intel_rdt = IntelRdt();
  edits.additional_gids = {0};
  edits.device_nodes = {{.path = "/dev/x", .file_mode = 0, .uid = 0, .gid = 0}};
  EXPECT_THAT(FormatJson(spec), AllOf(HasSubstr("\"timeout\": 0"), HasSubstr("\"intelRdt\": {}"),
                                      HasSubstr("\"additionalGids\": [\n      0\n    ]"),
                                      HasSubstr("\"fileMode\": 0"), HasSubstr("\"uid\": 0"),
                                      HasSubstr("\"gid\": 0"), Not(HasSubstr("\"major\": 0"))));
}

TEST(ReadJsonTest, ReadsEveryMember) {
  const absl::StatusOr<Spec> spec = ReadJson(R"({
    "containerEdits": {"additionalGids": [0, 4294967295]},
    "devices": [{"containerEdits": {
        "env": ["A=1"],
        "deviceNodes": [{"path": "/dev/c", "hostPath": "/dev/h", "type": "c",
                         "major": 9223372036854775807, "minor": 2, "fileMode": 4294967295,
                         "permissions": "mr", "uid": 0, "gid": 1}],
        "netDevices": [{"hostInterfaceName": "eth0", "name": "e"}],
        "hooks": [{"hookName": "prestart", "path": "/x", "args": ["", "y"], "env": ["B="],
                   "timeout": -9223372036854775808}],
        "mounts": [{"hostPath": "h", "containerPath": "c", "options": [""], "type": "t"}],
        "intelRdt": {"closID": "c", "l3CacheSchema": "l", "memBwSchema": "m", "schemata": [],
                     "enableMonitoring": true},
        "additionalGids": []},
      "annotations": {"x": ""}, "name": "0"}],
    "annotations": {"a/b/c": "v"}, "kind": "a/b", "cdiVersion": "v1.1.0"})");
  ASSERT_THAT(spec, IsOk());
  Spec expected;
  expected.version = "v1.1.0";
  expected.kind = "a/b";
  expected.annotations = {{"a/b/c", "v"}};
  expected.container_edits.additional_gids = {0, 4294967295};
  ContainerEdits edits;
  edits.env = {"A=1"};
  edits.device_nodes = {{"/dev/c", "/dev/h", "c", 9223372036854775807, 2, 4294967295, "mr", 0, 1}};
  edits.net_devices = {{"eth0", "e"}};
  edits.hooks = {{"prestart", "/x", {"", "y"}, {"B="}, std::numeric_limits<int64_t>::min()}};
  edits.mounts = {{"h", "c", {""}, "t"}};
  edits.intel_rdt = IntelRdt{"c", "l", "m", {{}}, true};
  expected.devices = {{"0", {{"x", ""}}, edits}};
  EXPECT_EQ(*spec, expected);
}

TEST(ReadJsonTest, NullMembersAreAbsent) {
  EXPECT_THAT(ReadJson(WithEdits(
                  R"({"env":["A=1"],"deviceNodes":null,"hooks":null,"mounts":null,"intelRdt":null,)"
                  R"("netDevices":null,"additionalGids":null})")),
              IsOk());
  EXPECT_THAT(ReadJson(WithEdits(
                  R"({"deviceNodes":[{"path":"/x","major":null,"fileMode":null,"type":null}]})")),
              IsOk());
}

TEST(ReadJsonTest, NamesThePlaceOfWrongContent) {
  const struct {
    const char* edits;
    const char* message;
  } kTests[] = {
      {R"([])", "devices[0].containerEdits: must be an object, not an array"},
      {R"({"env":"A=1"})", "devices[0].containerEdits.env: must be an array, not a string"},
      {R"({"env":[1]})", "devices[0].containerEdits.env[0]: must be a string, not a number"},
      {R"({"env":["A=1",null]})", "devices[0].containerEdits.env[1]: must be a string, not null"},
      {R"({"Env":["A=1"]})", "devices[0].containerEdits.Env: unknown member"},
      {R"({"a b":1})", "devices[0].containerEdits[\"a b\"]: unknown member"},
      {R"({"deviceNodes":[null]})",
       "devices[0].containerEdits.deviceNodes[0]: must be an object, not null"},
      {R"({"mounts":[null]})", "devices[0].containerEdits.mounts[0]: must be an object, not null"},
      {R"({"hooks":[null]})", "devices[0].containerEdits.hooks[0]: must be an object, not null"},
      {R"({"netDevices":[null]})",
       "devices[0].containerEdits.netDevices[0]: must be an object, not null"},
      {R"({"deviceNodes":[{"path":"/x","fileMode":4294967296}]})",
       "devices[0].containerEdits.deviceNodes[0].fileMode: must be between 0 and 4294967295"},
      {R"({"deviceNodes":[{"path":"/x","uid":-1}]})",
       "devices[0].containerEdits.deviceNodes[0].uid: must be between 0 and"},
      {R"({"deviceNodes":[{"path":"/x","fileMode":"0666"}]})",
       "devices[0].containerEdits.deviceNodes[0].fileMode: must be an integer, not a string"},
      {R"({"deviceNodes":[{"path":"/x","fileMode":1.5}]})",
       "devices[0].containerEdits.deviceNodes[0].fileMode: must be an integer"},
      {R"({"deviceNodes":[{"path":"/x","major":1.0}]})",
       "devices[0].containerEdits.deviceNodes[0].major: must be an integer"},
      {R"({"deviceNodes":[{"path":"/x","major":1e3}]})",
       "devices[0].containerEdits.deviceNodes[0].major: must be an integer"},
      {R"({"deviceNodes":[{"path":"/x","major":9223372036854775808}]})",
       "devices[0].containerEdits.deviceNodes[0].major: is too large"},
      {R"({"deviceNodes":[{"path":"/x","major":18446744073709551616}]})",
       "devices[0].containerEdits.deviceNodes[0].major: must be an integer"},
      {R"({"deviceNodes":[{"path":"/x","major":true}]})",
       "devices[0].containerEdits.deviceNodes[0].major: must be an integer, not a boolean"},
      {R"({"intelRdt":{"enableMonitoring":1}})",
       "devices[0].containerEdits.intelRdt.enableMonitoring: must be a boolean, not a number"},
      {R"({"intelRdt":{"enableCMT":true}})",
       "devices[0].containerEdits.intelRdt.enableCMT: unknown member"},
      {R"({"env":["A=1"],"additionalGIDs":[1]})",
       "devices[0].containerEdits.additionalGIDs: unknown member"},
      {R"({"additionalGids":[0,-1]})", "devices[0].containerEdits.additionalGids[1]: must be"},
      {R"({"mounts":[{"hostPath":"/a","containerPath":"/b"},{"containerPath":"/b"}]})",
       "devices[0].containerEdits.mounts[1].hostPath: must not be empty"},
  };
  for (const auto& test : kTests) {
    EXPECT_THAT(ReadJson(WithEdits(test.edits)),
                StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(test.message)))
        << test.edits;
  }
  EXPECT_THAT(ReadJson("[]"),
              StatusIs(absl::StatusCode::kInvalidArgument, "must be an object, not an array"));
  EXPECT_THAT(ReadJson("null"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ReadJsonTest, NamesThePlaceOfADuplicate) {
  EXPECT_THAT(ReadJson(WithEdits(R"({"mounts":[{},{"hostPath":"/a","hostPath":"/a"}]})")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "devices[0].containerEdits.mounts[1].hostPath: the key is there twice"));
  // The same key once more by an escape.
  EXPECT_THAT(ReadJson("{\"kind\":\"a/b\",\"\\u006bind\":\"a/b\"}"),
              StatusIs(absl::StatusCode::kInvalidArgument, "kind: the key is there twice"));
}

TEST(ReadJsonTest, NamesLineAndColumnOfBrokenText) {
  EXPECT_THAT(ReadJson("{\n  \"kind\" \"a/b\"}"),
              StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("line 2, column ")));
  EXPECT_THAT(ReadJson("{\n\n \"kind\": \"a\\/b\"}"),
              StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("line 3, column 12: ")));
  EXPECT_THAT(ReadJson(""), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ReadJsonTest, RefusesWhatYamlParsersRefuse) {
  for (const char* value :
       {"\\/", "\\ud83d\\ude00", "\\uD83D", "\\udfff", "\x7F", "\xC2\x80", "\xC2\x85", "\xC2\x9F",
        "\xEF\xBF\xBE", "\xEF\xBF\xBF", "\n", "\t", "\\\\\\/", "\xFF", "\xED\xA0\x80", "\xC3"}) {
    EXPECT_THAT(ReadJson(WithEnv(value)), StatusIs(absl::StatusCode::kInvalidArgument)) << value;
  }
  EXPECT_THAT(ReadJson(WithEnv(std::string("\0", 1))),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ReadJsonTest, KeysEndWithTheirLine) {
  const std::string good = WithEdits(R"({"env":["A= :"]})");
  for (const char* space : {"\n", "\r", "\r\n", " \n\t", "\n\n "}) {
    EXPECT_THAT(
        ReadJson(absl::StrReplaceAll(good, {{"\"env\":", absl::StrCat("\"env\"", space, ":")}})),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not on the line of the key")))
        << space;
  }
  EXPECT_THAT(ReadJson(absl::StrReplaceAll(good, {{"\"env\":", "\n\"env\" \t:\n"}})), IsOk());
  EXPECT_THAT(ReadJson("\n:"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ReadJsonTest, OutsideOfBracketsLinesDoNotBeginWithATab) {
  const std::string good = WithEdits("{\n\t\"env\"\t:\t[\n\t\"A=1\"]\n\t}");
  EXPECT_THAT(ReadJson(good + "\t\n"), IsOk());
  for (const std::string& text :
       {"\t" + good, " \t" + good, "\n\t" + good, good + "\n\t", good + "\n \t\n", good + "\t\r\t",
        std::string("\t"), std::string("\n\t")}) {
    EXPECT_THAT(ReadJson(text), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a tab")))
        << text;
  }
}

TEST(ReadJsonTest, KeysHaveAtMost1024Characters) {
  const auto with_key = [](const std::string& key) {
    return absl::StrReplaceAll(
        WithEdits(R"({"env":["A=1"]})"),
        {{"\"devices\"", absl::StrCat("\"annotations\":{\"", key, "\":\"1\"},\"devices\"")}});
  };
  const std::string longest(1022, 'a');  // and the quotes
  std::string wide;
  for (int i = 0; i < 1022; ++i) wide += "\xC3\xA9";
  EXPECT_THAT(ReadJson(with_key(longest)), IsOk());
  EXPECT_THAT(ReadJson(with_key(wide)), IsOk());
  EXPECT_THAT(ReadJson(with_key(longest.substr(6) + "\\u0061")), IsOk());
  for (const std::string& key : {longest + "a", wide + "a", longest.substr(5) + "\\u0061",
                                 longest + "\" \t", longest.substr(1) + "\\\""}) {
    EXPECT_THAT(ReadJson(with_key(key)), StatusIs(absl::StatusCode::kInvalidArgument)) << key;
  }
}

TEST(ReadJsonTest, AcceptsWhatYamlParsersAccept) {
  const struct {
    const char* text;
    const char* value;
  } kTests[] = {{"\\\\/", "\\/"},
                {"\\\\ud83d", "\\ud83d"},
                {"\\u00e9", "\xC3\xA9"},
                {"\\ud7ff", "\xED\x9F\xBF"},
                {"\\ue000", "\xEE\x80\x80"},
                {"\\uffff", "\xEF\xBF\xBF"},
                {"\\u0085", "\xC2\x85"},
                {"\\b\\f\\n\\r\\t\\\"", "\b\f\n\r\t\""},
                {"\xE2\x80\xA8", "\xE2\x80\xA8"},
                {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"}};
  for (const auto& test : kTests) {
    const absl::StatusOr<Spec> spec = ReadJson(WithEnv(test.text));
    ASSERT_THAT(spec, IsOk()) << test.text;
    EXPECT_EQ(spec->devices[0].container_edits.env[0], absl::StrCat("A=", test.value));
    EXPECT_THAT(ReadJson(FormatJson(*spec)), IsOkAndHolds(*spec)) << test.text;
  }
}

TEST(ReadJsonTest, RefusesWhatIsNotJson) {
  const std::string good = WithEdits(R"({"env":["A=1"]})");
  ASSERT_THAT(ReadJson(good), IsOk());
  ASSERT_THAT(ReadJson("\r\n " + good + "\t\r\n "), IsOk());
  for (const std::string& text :
       {"\xEF\xBB\xBF" + good, good + "x", good + good, good + ",", "# c\n" + good, "// c\n" + good,
        "/* c */" + good, good.substr(0, good.size() - 1),
        absl::StrReplaceAll(good, {{"]}", ",]}"}}), absl::StrReplaceAll(good, {{"\"", "'"}}),
        good + std::string(1, '\0'), good + std::string("\0x", 2),
        std::string("cdiVersion: 0.5.0\n"), std::string("{"), std::string("\""),
        std::string("\"\\")}) {
    EXPECT_THAT(ReadJson(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(ReadJsonTest, EveryPrefixIsRefused) {
  Spec spec = ClaimSpec();
  const std::string text = *WriteJson(spec);
  for (size_t length = 0; length < text.size() - 2; ++length) {  // without "}\n"
    EXPECT_THAT(ReadJson(text.substr(0, length)), StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(ReadJsonTest, SizeAndNestingAreLimited) {
  EXPECT_THAT(ReadJson(WithEdits(R"({"env":["A=1"]})") + std::string(kMaxDocumentSize, ' ')),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("larger than")));
  EXPECT_THAT(ReadJson(std::string(1 << 20, '[')),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nested deeper than 32")));
  EXPECT_THAT(ReadJson("{\"a\":" + std::string(1 << 20, '[')),
              StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("a[0][0]")));
  // Many keys of one object must not take quadratic time.
  std::string many = "{";
  for (int i = 0; i < 100000; ++i) absl::StrAppend(&many, "\"", i, "\":0,");
  EXPECT_THAT(ReadJson(many + "\"x\":0}"), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace ascend::cdi
