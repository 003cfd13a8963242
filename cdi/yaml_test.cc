#include "cdi/yaml.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/core/status_matchers.h"
#include "cdi/document.h"
#include "cdi/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::cdi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr absl::string_view kHead = "cdiVersion: 1.1.0\nkind: huawei.com/npu\n";
constexpr absl::string_view kDevices = "devices: [{name: a, containerEdits: {env: [A=1]}}]\n";

// A document with these lines as annotations.
std::string WithAnnotations(absl::string_view lines) {
  return absl::StrCat(kHead, kDevices, "annotations:\n  ",
                      absl::StrReplaceAll(lines, {{"\n", "\n  "}}), "\n");
}
// A document with `member` in the one device node.
std::string WithNode(absl::string_view member) {
  return absl::StrCat(kHead, "devices:\n- name: a\n  containerEdits:\n    deviceNodes:\n",
                      "    - path: /dev/x\n      ", member, "\n");
}

auto Refused(const char* message) {
  return StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(message));
}

TEST(ReadYamlTest, ReadsEveryMember) {
  const absl::StatusOr<Spec> spec = ReadYaml(R"(---
# What a vendor's tool would write, in every style.
cdiVersion: "1.1.0"
kind: 'huawei.com/npu'
annotations: {a/b: "c"}
containerEdits:
  additionalGids: [0, 4294967295]
devices:
- name: gpu0   # a comment
  annotations:
    x:  y z
  containerEdits:
    env:
    - A=1
    - "B=2\t\u00e9"
    - 'C=it''s'
    - |
      D=text
        more
    - >-
      E=folded
      text
    deviceNodes:
      - path: /dev/c
        hostPath: /dev/h
        type: c
        major: 0x10
        minor: 2
        fileMode: 0660
        permissions: mr
        uid: 0
        gid: 1
    netDevices: [{hostInterfaceName: eth0, name: e}]
    hooks:
    - {hookName: prestart, path: /x, args: [a, 'b', "c"], env: [B=], timeout: -1}
    mounts:
    - hostPath: /h
      containerPath: /c
      options:
      - ro
      - nosuid
      type: bind
    intelRdt: {closID: c, l3CacheSchema: l, memBwSchema: m, schemata: [], enableMonitoring: yes}
...
ignored: [
)");
  ASSERT_THAT(spec, IsOk());
  Spec expected;
  expected.version = "1.1.0";
  expected.kind = "huawei.com/npu";
  expected.annotations = {{"a/b", "c"}};
  expected.container_edits.additional_gids = {0, 4294967295};
  ContainerEdits edits;
  edits.env = {"A=1", "B=2\t\xC3\xA9", "C=it's", "D=text\n  more\n", "E=folded text"};
  edits.device_nodes = {{"/dev/c", "/dev/h", "c", 16, 2, 0660, "mr", 0, 1}};
  edits.net_devices = {{"eth0", "e"}};
  edits.hooks = {{"prestart", "/x", {"a", "b", "c"}, {"B="}, -1}};
  edits.mounts = {{"/h", "/c", {"ro", "nosuid"}, "bind"}};
  edits.intel_rdt = IntelRdt{"c", "l", "m", {{}}, true};
  expected.devices = {{"gpu0", {{"x", "y z"}}, edits}};
  EXPECT_EQ(*spec, expected);
}

TEST(ReadYamlTest, ReadsJson) {
  const std::string text = FormatJson(*ReadYaml(WithAnnotations("a: b")));
  EXPECT_THAT(ReadYaml(text), IsOkAndHolds(*ReadJson(text)));
}

TEST(ReadYamlTest, PlainScalarsInStringMembersKeepTheirText) {
  const absl::StatusOr<Spec> spec = ReadYaml(WithAnnotations(
      "a: yes\nb: 010\nc: 1.50\nd: 2001-01-01\n1: .inf\ntrue: 0x1F\ne: !!str null"));
  ASSERT_THAT(spec, IsOk());
  EXPECT_THAT(spec->annotations,
              UnorderedElementsAre(Pair("a", "yes"), Pair("b", "010"), Pair("c", "1.50"),
                                   Pair("d", "2001-01-01"), Pair("1", ".inf"), Pair("true", "0x1F"),
                                   Pair("e", "null")));
}

TEST(ReadYamlTest, RefusesScalarsOfAnotherTypeThanTheMembers) {
  const std::string node = "devices[0].containerEdits.deviceNodes[0]";
  const struct {
    const char* member;
    const char* problem;
  } kTests[] = {
      {"major: 1.5", ".major: must be an integer of at most 64 bits, not \"1.5\""},
      {"major: 08", ".major: must be an integer of at most 64 bits, not \"08\""},
      {"major: 9223372036854775808", ".major: must be an integer of at most 64 bits"},
      {"major: \"1\"", ".major: must be an integer, not a string"},
      {"major: true", ".major: must be an integer"},
      {"major: []", ".major: must be an integer, not an array"},
      {"major: -1", ".major: must not be negative"},
      {"fileMode: 4294967296", ".fileMode: must be between 0 and 4294967295"},
      {"fileMode: -1", ".fileMode: must be between 0 and 4294967295"},
      {"fileMode: '0660'", ".fileMode: must be an integer, not a string"},
      {"type: [c]", ".type: must be a string, not an array"},
      {"type: {}", ".type: must be a string, not an object"},
      {"unknown: 1", ".unknown: unknown member"},
  };
  for (const auto& test : kTests) {
    EXPECT_THAT(ReadYaml(WithNode(test.member)), Refused((node + test.problem).c_str()))
        << test.member;
  }
  const std::string monitoring = WithNode("type: c\n    intelRdt: {enableMonitoring: VALUE}");
  EXPECT_THAT(ReadYaml(absl::StrReplaceAll(monitoring, {{"VALUE", "off"}})), IsOk());
  EXPECT_THAT(ReadYaml(absl::StrReplaceAll(monitoring, {{"VALUE", "1"}})),
              Refused("devices[0].containerEdits.intelRdt.enableMonitoring: must be a boolean"));
  EXPECT_THAT(ReadYaml(absl::StrReplaceAll(monitoring, {{"VALUE", "'yes'"}})),
              Refused("devices[0].containerEdits.intelRdt.enableMonitoring: must be a boolean"));
  EXPECT_THAT(ReadYaml("a"), Refused("must be an object, not a scalar"));
  EXPECT_THAT(ReadYaml("- a"), Refused("must be an object, not an array"));
}

TEST(ReadYamlTest, NullMembersAreAbsentAndNullEntriesRefused) {
  EXPECT_THAT(ReadYaml(WithNode("type:\n      major: ~\n      minor: null\n      fileMode: Null")),
              IsOk());
  for (const char* member :
       {"env", "deviceNodes", "mounts", "hooks", "netDevices", "additionalGids"}) {
    const std::string text =
        absl::StrCat(kHead, "devices:\n- name: a\n  containerEdits: {", member, ": [~]}\n");
    EXPECT_THAT(
        ReadYaml(text),
        Refused(absl::StrCat("devices[0].containerEdits.", member, "[0]: must be").c_str()));
  }
  EXPECT_THAT(ReadYaml(absl::StrCat(kHead, "devices:\n-\n")),
              Refused("devices[0]: must be an object, not null"));
  EXPECT_THAT(ReadYaml(WithAnnotations("a:")),
              Refused("annotations.a: must be a string, not null"));
  EXPECT_THAT(ReadYaml("---"), Refused("must be an object, not null"));
}

TEST(ReadYamlTest, KeysAreStringsAndUnique) {
  EXPECT_THAT(ReadYaml(WithAnnotations("a: b\n'a': c")),
              Refused("annotations.a: the key is there twice"));
  EXPECT_THAT(ReadYaml(absl::StrCat(kHead, kDevices, "kind: a/b\n")),
              Refused("kind: the key is there twice"));
  EXPECT_THAT(ReadYaml(WithAnnotations("? a\n: b")), IsOk());
  EXPECT_THAT(ReadYaml(WithAnnotations("~: b")), Refused("line 5, column 3: a key must be"));
  EXPECT_THAT(ReadYaml(WithAnnotations("[a]: b")), Refused("line 5, column 3: a key must be"));
  EXPECT_THAT(ReadYaml(WithAnnotations("{a: b}: c")), Refused("line 5, column 3: a key must be"));
  EXPECT_THAT(ReadYaml(WithAnnotations("a: &x [b]\n*x : c")), Refused("line 6, column 3: a key"));
}

TEST(ReadYamlTest, ResolvesAliasesAndMergeKeys) {
  const absl::StatusOr<Spec> spec = ReadYaml(absl::StrCat(kHead, R"(
annotations: &a {&k a: &v b, <<: [{c: d, a: ignored}, {c: ignored, e: *v}], *v : *k}
devices:
- name: x
  annotations: *a
  containerEdits:
    mounts:
    - &m
      hostPath: /a
      containerPath: /a
      options: &o [ro]
    - <<: *m
      containerPath: /b
    - {hostPath: /c, containerPath: /c, options: *o}
)"));
  ASSERT_THAT(spec, IsOk());
  EXPECT_THAT(spec->annotations,
              UnorderedElementsAre(Pair("a", "b"), Pair("c", "d"), Pair("e", "b"), Pair("b", "a")));
  EXPECT_EQ(spec->devices[0].annotations, spec->annotations);
  EXPECT_THAT(spec->devices[0].container_edits.mounts,
              ElementsAre(Mount{"/a", "/a", {"ro"}, ""}, Mount{"/a", "/b", {"ro"}, ""},
                          Mount{"/c", "/c", {"ro"}, ""}));
  EXPECT_THAT(ReadYaml(WithAnnotations("'<<': a")), IsOk());  // quoted, a key like others
}

TEST(ReadYamlTest, RefusesWrongAliasesAndMergeKeys) {
  EXPECT_THAT(ReadYaml(WithAnnotations("a: *x")), Refused("line 5, column 6: "));
  EXPECT_THAT(ReadYaml(WithAnnotations("a: &x [*x]")),
              Refused("line 5, column 10: an alias inside of what it stands for"));
  EXPECT_THAT(ReadYaml(WithAnnotations("<<: a")), Refused("line 5, column 3: <<"));
  EXPECT_THAT(ReadYaml(WithAnnotations("<<:")), Refused("line 5, column 3: <<"));
  EXPECT_THAT(ReadYaml(WithAnnotations("<<: [{a: b}, c]")), Refused("line 5, column 3: <<"));
  EXPECT_THAT(ReadYaml(WithAnnotations("<<: {a: b}\n<<: {c: d}")),
              Refused("annotations[\"<<\"]: the key is there twice"));
  EXPECT_THAT(ReadYaml(absl::StrCat(kHead, kDevices, "<<: {unknown: 1}\n")),
              Refused("unknown: unknown member"));
}

TEST(ReadYamlTest, AliasesMayNotBlowUpADocument) {
  std::string laughs = "a0: &a0 [xxxxxxxxxx, xxxxxxxxxx, xxxxxxxxxx]\n";
  for (int i = 1; i < 30; ++i) {
    absl::StrAppend(&laughs, "a", i, ": &a", i, " [*a", i - 1, ", *a", i - 1, "]\n");
  }
  EXPECT_THAT(ReadYaml(laughs),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("aliases make more than")));
  // Deep by aliases alone.
  std::string deep = "a0: &a0 [x]\n";
  for (int i = 1; i < 40; ++i) absl::StrAppend(&deep, "a", i, ": &a", i, " [*a", i - 1, "]\n");
  EXPECT_THAT(ReadYaml(deep),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nested deeper than 32")));
  // An anchor around each level would copy each inner one again and again.
  std::string nested;
  for (int i = 0; i < 30; ++i) absl::StrAppend(&nested, "&a", i, " [");
  for (int i = 0; i < 10000; ++i) nested += "xxxxxxxxxx, ";
  nested += std::string(30, ']');
  EXPECT_THAT(ReadYaml(nested),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("aliases make more than")));
}

TEST(ReadYamlTest, TagsMayOnlySayWhatIsThere) {
  EXPECT_THAT(
      ReadYaml(WithAnnotations("!!str a: !!str 5\nb: !!str \"c\"\nd: !<tag:yaml.org,2002:str> e")),
      IsOk());
  EXPECT_THAT(ReadYaml(absl::StrCat("!!map\n", kHead, kDevices)), IsOk());
  for (const char* value : {"!!int 5", "!!binary aGVsbG8=", "!!binary \"aGVsbG8=\"", "!foo 5",
                            "!!null ~", "!!map {}", "!!str [a]", "!<x> a"}) {
    EXPECT_THAT(ReadYaml(WithAnnotations(absl::StrCat("a: ", value))),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << value;
  }
  EXPECT_THAT(ReadYaml(WithAnnotations("a: !foo 5")),
              Refused("line 5, column 6: the tag must be !!str or none, not \"!foo\""));
}

TEST(ReadYamlTest, NamesLineAndColumnOfBrokenText) {
  const struct {
    const char* lines;
    const char* place;
  } kTests[] = {{"a: - b", "line 5, column 6: "},
                {"a: @b", "line 5, column 6: "},
                {"a: b: c", "line 5, column 7: "},
                {"a: b\n\tc: d", "line 6, column 3: "},
                {"a: [b", "line "},
                {"a: \"b", "line "},
                {"a: 'b", "line "},
                {"a: \"\\q\"", "line 5, column "},
                {"a: \"\\/\"", "line 5, column 6: the escape \\/"},
                {"a: \"\\ud83d\\ude00\"", "line 5, column "},
                {"a: \"\\N\"", "line 5, column 6: the escapes"},
                {"a: b\nc", "line 6, column 3: no colon after the key"},
                {"a: b\n]", "line 6, column 3: "}};
  for (const auto& test : kTests) {
    EXPECT_THAT(ReadYaml(WithAnnotations(test.lines)), Refused(test.place)) << test.lines;
  }
}

TEST(ReadYamlTest, RefusesBytesThatParsersReadDifferently) {
  for (const char* text :
       {"\x01", "\x1F", "\x7F", "\xC2\x80", "\xC2\x85", "\xC2\x9F", "\xE2\x80\xA8", "\xE2\x80\xA9",
        "\xEF\xBF\xBE", "\xEF\xBF\xBF", "\xFF", "\xC3", "\xED\xA0\x80", "\rb"}) {
    for (const char* quote : {"", "\"", "'"}) {
      EXPECT_THAT(ReadYaml(WithAnnotations(absl::StrCat("a: ", quote, "x", text, quote))),
                  Refused("line 5, column "))
          << absl::StrCat(quote, text);
    }
  }
  const std::string good = WithAnnotations("a: b");
  EXPECT_THAT(ReadYaml(good + std::string(1, '\0')), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ReadYaml(std::string("\0", 1) + good), Refused("line 1, column 1: raw control"));
  // UTF-16, which the reference reads.
  EXPECT_THAT(ReadYaml(std::string("\xFF\xFE"
                                   "a\0",
                                   4)),
              Refused("line 1, column 1: not valid"));
}

TEST(ReadYamlTest, TakesByteOrderMarkLineEndsAndDirectives) {
  const std::string good = WithAnnotations("a: b");
  const absl::StatusOr<Spec> spec = ReadYaml(good);
  ASSERT_THAT(spec, IsOk());
  EXPECT_THAT(ReadYaml("\xEF\xBB\xBF" + good), IsOkAndHolds(*spec));
  EXPECT_THAT(ReadYaml(absl::StrReplaceAll(good, {{"\n", "\r\n"}})), IsOkAndHolds(*spec));
  EXPECT_THAT(ReadYaml("# c\n\n%YAML 1.1\n# c\n---\n" + good), IsOkAndHolds(*spec));
  EXPECT_THAT(ReadYaml("%YAML 1.1\n" + good), Refused("line 2, column 1: --- must follow"));
  EXPECT_THAT(ReadYaml(absl::StrCat(kHead, "%YAML 1.1\n", kDevices)),
              Refused("line 3, column 1: a directive inside of the document"));
  EXPECT_THAT(ReadYaml("%TAG !e! tag:example.com,2000:\n%YAML 1.1 # c\n---\n" + good),
              IsOkAndHolds(*spec));
  for (const char* directive : {"%YAML 1.2", "%YAML 2.0", "%YAML", "%YAML 1.1 x", "%FOO", "%"}) {
    EXPECT_THAT(ReadYaml(absl::StrCat("# c\n", directive, "\n---\n", good)),
                Refused("line 2, column 1: "))
        << directive;
  }
}

TEST(ReadYamlTest, RefusesBlocksThatParsersReadDifferently) {
  for (const char* block : {"|\n    b\n", "|-\n    b\n", "|+\n    b\n\n\n", ">\n    b\n\n    c\n",
                            ">-\n    b\n", "|2-\n    b\n", ">2\n    b\n", "> # +\n    b\n"}) {
    EXPECT_THAT(ReadYaml(WithAnnotations(absl::StrCat("a: ", block))), IsOk()) << block;
    for (const char* properties : {"&x ", "!!str ", "&x !!str "}) {
      EXPECT_THAT(ReadYaml(WithAnnotations(absl::StrCat("a: ", properties, block))),
                  StatusIs(absl::StatusCode::kInvalidArgument))
          << properties << block;
    }
  }
  for (const char* block : {">+\n    b\n\n\n", ">2+\n    b\n", ">+2\n    b\n"}) {
    EXPECT_THAT(ReadYaml(WithAnnotations(absl::StrCat("a: ", block))),
                Refused("line 5, column 6: folded"))
        << block;
  }
}

TEST(ReadYamlTest, OnlyTheFirstDocumentCounts) {
  const std::string good = WithAnnotations("a: b");
  for (const char* rest : {"---\nfoo: 1\n", "...\n[", "--- x\n", "...\n%FOO\n"}) {
    EXPECT_THAT(ReadYaml(good + rest), IsOk()) << rest;
  }
  for (const char* text : {"", "\n", "# only\n", "   "}) {
    EXPECT_THAT(ReadYaml(text), Refused("there is no document")) << text;
  }
}

TEST(ReadYamlTest, ABrokenOffFileIsNeverTakenForAnother) {
  const std::string text = absl::StrCat(
      kHead, "devices:\n- name: a\n  containerEdits:\n    env:\n    - A=1\n    - \"B=2\"\n",
      "    deviceNodes:\n    - path: /dev/x\n      type: c\n      fileMode: 0660\n",
      "    hooks:\n    - {hookName: prestart, path: /x}\nannotations:\n  'a': |\n   b\n");
  ASSERT_THAT(ReadYaml(text), IsOk());
  for (size_t length = 0; length < text.size(); ++length) {
    const std::string prefix = text.substr(0, length);
    // Half a plain scalar is one; half a line with a key is none.
    const std::string last_line(
        absl::StripLeadingAsciiWhitespace(prefix.substr(prefix.rfind('\n') + 1)));
    if (ReadYaml(prefix).ok() && !last_line.empty()) {
      EXPECT_THAT(last_line, testing::AnyOf(HasSubstr(":"), StartsWith("-"), "b")) << prefix;
    }
  }
}

TEST(ReadYamlTest, SizeAndNestingAreLimited) {
  EXPECT_THAT(ReadYaml(WithAnnotations("a: b") + std::string(kMaxYamlSize, '\n')),
              Refused("larger than 1048576 bytes"));
  for (const char* unit : {"[", "{", "- ", "? ", "{a: ", "[a, ", "[[], ", ": ", "? - "}) {
    std::string text;
    while (text.size() < kMaxYamlSize / 4) text += unit;
    EXPECT_THAT(ReadYaml(text), StatusIs(absl::StatusCode::kInvalidArgument)) << unit;
  }
  EXPECT_THAT(ReadYaml(std::string(100000, '[') + std::string(100000, ']')), Refused("[0][0][0]"));
  // Many keys of one object must not take quadratic time, nor many merged ones.
  std::string many = "{<<: [{a: b}";
  for (int i = 0; i < 5000; ++i) absl::StrAppend(&many, ", {m", i, ": 0}");
  many += "]";
  for (int i = 0; i < 40000; ++i) absl::StrAppend(&many, ", k", i, ": 0");
  EXPECT_THAT(ReadYaml(many + "}"), Refused("k0: unknown member"));
}

TEST(ReadYamlTest, OneCharacterNamesAreRead) {
  EXPECT_THAT(ReadYaml(absl::StrCat("cdiVersion: 0.3.0\nkind: a/b\n", kDevices)), IsOk());
  EXPECT_THAT(ReadYaml(absl::StrCat("cdiVersion: 0.3.0\nkind: a/\n", kDevices)), Refused("kind: "));
}

}  // namespace
}  // namespace ascend::cdi
