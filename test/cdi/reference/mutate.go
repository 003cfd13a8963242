package main

import (
	"slices"
	"strings"
)

// Member names of all levels, right and nearly right.
var memberNames = []string{
	"cdiVersion", "kind", "annotations", "devices", "containerEdits", "name", "env", "deviceNodes", "netDevices", "hooks", "mounts",
	"intelRdt", "additionalGids", "path", "hostPath", "type", "major", "minor", "fileMode", "permissions", "uid", "gid",
	"containerPath", "options", "hookName", "args", "timeout", "closID", "l3CacheSchema", "memBwSchema", "schemata",
	"enableMonitoring", "hostInterfaceName", "CdiVersion", "Name", "additionalGIDs", "enableCMT", "enableMBM", "schema", "x", "",
	"<<", "__proto__",
}

var badVersions = []string{
	"", "0.1.0", "0.2.0", "0.3", "0.3.1", "0.5.1", "0.9.0", "1.0", "1.0.1", "1.1", "1.2.0", "2.0.0", "V0.3.0", "vv0.3.0", "v", " 1.1.0",
	"1.1.0 ", "1.1.0\n", "01.1.0", "latest", "0.7.0-rc1",
}

var badKinds = []string{
	"", "/", "huawei.com", "/npu", "huawei.com/", "1a.com/npu", "huawei.com/npu=", "huawei.com/npu:", "huawei.com//npu", "a/b/c",
	"-a/b", "a-/b", "a/b-", "a/-b", "a b/c", "é/b", "a/é", "a/bé", ".a/b", "a/.b", "a_/b", "a/1", "aéa/b",
}

var badDeviceNames = []string{
	"", "-a", "a-", "a b", "a=b", "a/b", "é", "aé", "aéa", "_a", "a_", ":a", "a:", ".", "a.", "a..b", "0", "a\n", "A", "\u0661", "-",
}

// mutate changes one place of a document, towards what is just right or just wrong.
func (r random) mutate(v *value) {
	all := v.slots()
	if len(all) == 0 {
		return
	}
	s := pick(r, all)
	switch r.IntN(14) {
	case 0: // dropped
		s.parent.remove(s.index)
	case 1: // twice
		if s.parent.kind == object {
			i := r.IntN(len(s.parent.keys) + 1)
			s.parent.keys = slices.Insert(s.parent.keys, i, s.parent.keys[s.index])
			s.parent.items = slices.Insert(s.parent.items, i, s.get().copy())
		} else {
			s.parent.items = append(s.parent.items, s.get().copy())
		}
	case 2: // renamed
		if s.parent.kind == object {
			key := &s.parent.keys[s.index]
			switch r.IntN(4) {
			case 0:
				*key = strings.ToUpper(*key)
			case 1:
				*key += r.of("s", " ", "\u200b")
			case 2:
				*key = pick(r, oddStrings)
			default:
				*key = pick(r, memberNames)
			}
		}
	case 3: // null
		s.set(lit("null"))
	case 4: // a null entry
		arrays := slices.DeleteFunc(slices.Clone(all), func(s slot) bool { return s.get().kind != array })
		if len(arrays) > 0 {
			s = pick(r, arrays)
		}
		if target := s.get(); target.kind == array {
			target.items = slices.Insert(target.items, r.IntN(len(target.items)+1), lit("null"))
		} else {
			s.set(list(lit("null")))
		}
	case 5: // another type
		s.set(pick(r, []func() *value{
			func() *value { return list() }, newObject, func() *value { return str("") },
			func() *value { return list(s.get().copy()) }, func() *value { return newObject().add("x", s.get().copy()) },
			func() *value { return lit("true") }, func() *value { return lit("0") }, func() *value { return str("1") },
			func() *value { return list(list()) }, func() *value { return lit("1.5") },
		})())
	case 6, 7: // a number at an edge
		numbers := slices.DeleteFunc(slices.Clone(all), func(s slot) bool { return s.get().kind != literal })
		if len(numbers) > 0 {
			s = pick(r, numbers)
		}
		s.set(lit(pick(r, edgeNumbers)))
	case 8, 9: // an odd string
		texts := slices.DeleteFunc(slices.Clone(all), func(s slot) bool { return s.get().kind != text })
		if len(texts) == 0 {
			return
		}
		s = pick(r, texts)
		odd := pick(r, oddStrings)
		if r.chance(50) {
			s.get().text += odd
		} else {
			s.get().text = odd
		}
	case 10: // an unknown member, or a known one where it does not belong
		if s.get().kind == object {
			s.get().add(pick(r, memberNames), pick(r, []*value{lit("null"), lit("1"), str("x"), list(), newObject()}))
		}
	case 11:
		r.setMember(v, "cdiVersion", pick(r, badVersions))
	case 12:
		r.setMember(v, "kind", pick(r, badKinds))
	case 13: // a value that only its own rule refuses or accepts
		r.breakRule(all)
	}
}

func (r random) setMember(v *value, key, text string) {
	for i, k := range v.keys {
		if k == key {
			v.items[i] = str(text)
		}
	}
}

func (r random) breakRule(all []slot) {
	candidates := map[string][]*value{
		"name":              {str(pick(r, badDeviceNames))},
		"type":              {str("C"), str("char"), str("cc"), str("bind "), lit("0")},
		"permissions":       {str("none"), str("None"), str("rx"), str("r w"), str("rwmrwm"), str("nonerw"), str("é")},
		"hookName":          {str("CreateRuntime"), str("prestart "), str(""), str("preStart")},
		"closID":            {str("."), str(".."), str("a/b"), str("a\nb"), str(long(4095)), str(long(4096)), str("//")},
		"hostInterfaceName": {str(""), str("eth0"), str("é")},
		"path":              {str(""), lit("null"), str("relative"), str("/a/../b")},
		"containerPath":     {str("")},
		"hostPath":          {str("")},
		"schemata":          {list(), lit("null"), strs(""), list(lit("null"))},
		"enableMonitoring":  {lit("null"), str("true"), str("yes"), lit("1"), lit("0"), str("")},
		"intelRdt":          {newObject(), lit("null"), list()},
		"containerEdits":    {newObject(), lit("null"), list(), newObject().add("env", list()), newObject().add("intelRdt", newObject())},
		"additionalGids":    {list(lit("0")), list(lit("-1")), list(lit("4294967296")), list(str("1")), list(), lit("null")},
		"annotations":       {newObject(), lit("null"), list(), newObject().add("a", lit("null")), newObject().add("a", lit("1"))},
		"devices":           {list(), lit("null"), newObject(), list(lit("null"))},
		"env":               {strs(""), strs("="), strs("=A"), strs("A"), list(lit("1")), list(lit("null"))},
		"deviceNodes":       {list(lit("null")), list(), lit("null"), list(newObject())},
		"mounts":            {list(lit("null")), list(), lit("null"), list(newObject())},
		"hooks":             {list(lit("null")), list(), lit("null"), list(newObject())},
		"netDevices":        {list(lit("null")), list(), lit("null"), list(newObject())},
		"args":              {list(), list(lit("null")), list(lit("1")), list(lit("true"))},
		"fileMode":          {str("0666"), lit("-1"), lit("4294967296"), lit("null")},
		"timeout":           {lit("null"), lit("0"), lit("-5"), str("1"), lit("9223372036854775808")},
	}
	var matching []slot
	for _, s := range all {
		if s.parent.kind == object && candidates[s.parent.keys[s.index]] != nil {
			matching = append(matching, s)
		}
	}
	if len(matching) > 0 {
		s := pick(r, matching)
		s.set(pick(r, candidates[s.parent.keys[s.index]]).copy())
	}
}

var oddPieces = []string{
	"\x00", "\x01", "\x7f", "\u0080", "\u0085", "\u009f", "\ufeff", "\ufffe", "\uffff", "\u2028", "\u2029", "\u00a0", "é", "😀", "\t",
	"\n", "\r", "\r\n", " ", "\"", "'", "\\", "\\/", "\\u0000", "\\ud83d\\ude00", "\\ud800", "\\u00e9", "\\x41", "\\n", "\\0", "\\e", "\\_",
	"\\N", "\\U0001f600", "{", "}", "[", "]", ",", ":", "#", " # c", "//", "/* */", "-", "- ", "? ", "&a ", "*a", "! ", "!!str ", "|",
	">", "%", "@", "`", "null", "true", "0", "1", "-1", ".", "e", "---\n", "\n---\n", "...\n", "\n...\n", "<<: ", "{}", "[]", "\"\"", ",,",
	"\u200b", "\v", "\f", "\x1b", "\U0010ffff", "\ue000", "NaN", "Infinity",
}

// damage changes the text without regard for what it means. It stays valid UTF-8.
func (r random) damage(text string) string {
	runes := []rune(text)
	if len(runes) == 0 {
		return pick(r, oddPieces)
	}
	at := r.IntN(len(runes))
	end := min(len(runes), at+1+r.IntN(8))
	switch r.IntN(8) {
	case 0: // cut off
		return string(runes[:at])
	case 1: // dropped
		return string(slices.Delete(runes, at, end))
	case 2: // twice
		return string(runes[:end]) + string(runes[at:])
	case 3:
		return pick(r, oddPieces) + text
	case 4:
		return text + pick(r, oddPieces)
	case 5:
		return string(runes[:at]) + pick(r, oddPieces) + string(runes[at+1:])
	default:
		return string(runes[:at]) + pick(r, oddPieces) + string(runes[at:])
	}
}
