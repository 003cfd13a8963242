package main

import (
	"os"
	"path/filepath"
	"strings"

	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/specs-go"
)

// Texts that no mutation of a good one leads to.
func (r random) hostileText() string {
	const good = `{"cdiVersion":"0.5.0","kind":"huawei.com/npu","devices":[{"name":"a","containerEdits":{"env":["A=1"]}}]}`
	const tail = "cdiVersion: 0.5.0\nkind: huawei.com/npu\ndevices:\n- name: a\n  containerEdits:\n    env: [\"A=1\"]\n"
	n := 1 << (3 + r.IntN(6))
	return pick(r, []func() string{
		func() string {
			return r.of("", " ", "\n", "null", "~", "[]", "{}", "\"\"", "0", "true", "---", "...", "#", "\ufeff", "\x00", "{", "[{]}", "}")
		},
		func() string { return strings.Repeat("[", n) + strings.Repeat("]", n) },
		func() string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) },
		func() string { return strings.Repeat("[", n) },
		func() string { return strings.Repeat("- ", n) + "a" },
		func() string { return strings.Repeat("? ", n) + "a" },
		func() string { return strings.Replace(good, `"A=1"`, strings.Repeat("[", n)+strings.Repeat("]", n), 1) },
		func() string {
			return good + r.of(good, " ", "\n\t", "\t\n", "\r\n \t\n", "\n"+good, ",", "}", "]", "\x00", " x", "#", " # c", "//", "\n---\n"+good, "\n...\n")
		},
		func() string {
			return r.of(" ", "\n\n", "\t", "\ufeff", "\ufeff\ufeff", "# c\n", "// c\n", "---\n", "x", "\u0085", "\u2028", "%YAML 1.2\n---\n") + good
		},
		func() string { return strings.ReplaceAll(good, `"`, `'`) },
		func() string { return strings.Replace(good, `"A=1"`, `"A=`+long(n*40)+`"`, 1) },
		func() string {
			return strings.Replace(good, `"kind"`, r.of(`"kind"`+"\n", `"kind" `, `kind`, `"ki\u006ed"`, "\"ki\nnd\"", `"kind\u0000"`, `? "kind"`), 1)
		},
		func() string {
			return strings.Replace(good, `"kind":`, `"annotations":{"`+long(r.IntN(1200))+`":"1"},"kind":`, 1)
		},
		func() string { return strings.Replace(good, `,`, r.of(",,", ", ,", ",\n", ",\t", ";", ""), 1) },
		func() string {
			return strings.Replace(good, `:`, r.of(" :", ": ", ":\n", ":\t", "=", "::", "\n:", ":\n\n  "), 1+r.IntN(4))
		},
		func() string {
			return tail + r.of("---\n", "...\n", "x: 1\n", "kind: b/c\n", "devices: []\n", "? kind\n", "- a\n", "\x00", "*a\n", "<<: {}\n", "<<: {kind: c/d}\n")
		},
		func() string {
			return "annotations: &a {x: \"1\"}\n" + tail + r.of("<<: *a\n", "<<: {annotations: *a}\n", "containerEdits: {<<: *a}\n", "containerEdits: *a\n")
		},
		func() string { // aliases that multiply
			var b strings.Builder
			b.WriteString("x0: &x0 [a, a, a, a, a, a, a, a, a]\n")
			for i := 1; i < 3+r.IntN(5); i++ {
				prev := "*x" + string(rune('0'+i-1))
				b.WriteString("x" + string(rune('0'+i)) + ": &x" + string(rune('0'+i)) + " [" + strings.Repeat(prev+", ", 8) + prev + "]\n")
			}
			return b.String() + tail
		},
		func() string { return "a: &a [*a]\n" + tail },
		func() string {
			return strings.Replace(tail, "[\"A=1\"]", "&e\n    - A=1\n    - "+r.of("*e", "B=2", "*f", "&f C=3\n    - *f", "!!str D=4"), 1)
		},
		func() string {
			return strings.Replace(tail, "- name", r.of("-\tname", "-  name", "-\n  name", "- - name", "-name", "- ? name\n  "), 1)
		},
		func() string { return strings.ReplaceAll(tail, "\n", r.of("\r\n", "\r", "\n\n", "\n\t", "\n ")) },
		func() string { return strings.ReplaceAll(tail, "  ", r.of("\t", " ", "   ", "\u00a0\u00a0")) },
	})()
}

func (r random) specText() (file, content string) {
	asYAML := r.chance(40)
	if r.chance(6) {
		asYAML = r.chance(50)
		content = r.hostileText()
	} else {
		spec := r.validSpec(anySpec)
		if r.chance(45) {
			r.mutate(spec)
			if r.chance(25) {
				r.mutate(spec)
			}
		}
		if asYAML {
			content = r.toYAML(spec)
		} else {
			content = r.toJSON(spec)
		}
		if r.chance(12) {
			for range 1 + r.IntN(2) {
				content = r.damage(content)
			}
		}
	}
	// Now and then the other extension.
	if asYAML != r.chance(4) {
		return "s.yaml", content
	}
	return "s.json", content
}

// leftOut tells whether the reference refuses a YAML file for one of the reasons that we do not see.
func leftOut(file, content string) bool {
	if filepath.Ext(file) != ".yaml" {
		return false
	}
	_, err := cdi.ParseSpec([]byte(content))
	if err == nil {
		return false
	}
	if strings.Contains(content, "\t") && strings.Contains(err.Error(), "found character that cannot start any token") {
		return true
	}
	// The beginning of the next document.
	for at, separator := range content {
		if separator == '\n' && (strings.HasPrefix(content[at+1:], "---") || strings.HasPrefix(content[at+1:], "...")) {
			if raw, err := cdi.ParseSpec([]byte(content[:at+1])); err == nil && raw != nil {
				return true
			}
		}
	}
	return false
}

func (r random) specCase(dir string) (testCase, error) {
	file, content := r.specText()
	for leftOut(file, content) {
		file, content = r.specText()
	}
	path := filepath.Join(dir, file)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		return testCase{}, err
	}
	corrected := false
	expect := guard(func() result {
		spec, err := cdi.ReadSpec(path, 0)
		if err != nil {
			return result{"ok": false, "error": strings.ReplaceAll(err.Error(), dir, "$ROOT")}
		}
		version, err := specs.MinimumRequiredVersion(spec.Spec)
		if err != nil {
			return failed(err)
		}
		right := minimumVersion(spec.Spec)
		corrected = right != version
		return result{"ok": true, "minVersion": right, "canonical": spec.Spec}
	})
	f := classify(file, content, expect.ok())
	if corrected {
		f.cause = "last-device"
	}
	return testCase{Group: "spec/" + filepath.Ext(file)[1:], Op: "spec", File: file, Text: &content, Expect: expect, Traits: f.traits,
		Cause: f.cause}, nil
}
