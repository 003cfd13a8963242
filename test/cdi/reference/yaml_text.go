package main

import (
	"fmt"
	"regexp"
	"strings"
)

// yamlText spells a document as YAML. Not everything that comes out is YAML, and not everything means
// what the document said: the reference tells.
type yamlText struct {
	random
	step int
	// In percent.
	flow, comments, anchors, tags, merges, oddPlain, oddNumbers int
	known                                                       map[string][]string // anchors by member
	anchorCount                                                 *int
}

func (r random) toYAML(v *value) string {
	y := yamlText{random: r, step: 2, known: map[string][]string{}, anchorCount: new(int), flow: 15}
	if r.chance(15) {
		y.step = 1 + r.IntN(6)
	}
	if r.chance(15) {
		y.comments = 25
	}
	if r.chance(20) {
		y.anchors = 30
	}
	if r.chance(10) {
		y.tags = 15
	}
	if r.chance(8) {
		y.merges = 30
	}
	if r.chance(8) {
		y.oddPlain = 25
	}
	if r.chance(25) {
		y.oddNumbers = 40
	}
	if r.chance(10) {
		y.flow = r.IntN(101)
	}
	var body string
	if v.isCollection() && len(v.items) > 0 && !r.chance(5) {
		body = y.block(v, "", 0)
	} else {
		body = y.flowText(v, "") + "\n"
	}
	switch r.IntN(40) {
	case 0, 1, 2, 3, 4, 5:
		body = "---\n" + body
	case 6:
		body = r.of("%YAML 1.1\n---\n", "%YAML 1.2\n---\n", "%TAG !e! tag:example.com,2000:\n---\n", "%YAML 2.0\n---\n", "%FOO\n---\n",
			"%YAML 1.2\n", "\n\n# c\n---\n", "--- # c\n", "--- ", "---\n---\n", "...\n", "\ufeff", "--- !!map\n", "--- &a\n", "--- |\n", "#\n", "\t\n",
			"---\n...\n") + body
	case 7, 8:
		body += r.of("---\nfoo: 1\n", "...\n", "...\ngarbage\n", "--- \n", "...\n---\n[", "# end", "...\n\x01", "...\n%YAML 1.1\n", "\t",
			"foo", "...x\n", "---x\n", "--- *a\n", "...\n\u0080")
	case 9:
		body = strings.ReplaceAll(body, "\n", r.of("\r\n", "\r", "\n\n", " \n", "\t\n", "\u0085", "\u2028"))
	}
	return body
}

var plainText = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./=+-]*$`)

func (y yamlText) block(v *value, member string, indent int) string {
	pad := strings.Repeat(" ", indent)
	var b strings.Builder
	for i, item := range v.items {
		if y.chance(y.comments) {
			b.WriteString(y.of("", pad) + y.of("# comment\n", "#\n", "\n"))
		}
		if v.kind == array {
			b.WriteString(y.element(item, member, pad, indent))
			continue
		}
		key := v.keys[i]
		if y.chance(y.merges) && i == 0 {
			b.WriteString(pad + "<<: " + y.merged(member, v) + "\n")
		}
		b.WriteString(pad + y.key(key) + ":" + y.member(item, key, indent))
	}
	return b.String()
}

func (y yamlText) key(key string) string {
	switch {
	case y.chance(y.merges) && y.chance(20):
		return "? " + y.scalar(str(key), false, 0) + "\n"
	case plainText.MatchString(key) && !y.chance(5):
		return key
	}
	return y.scalar(str(key), false, 0)
}

// merged is what stands behind "<<:".
func (y yamlText) merged(member string, v *value) string {
	if names := y.known[member]; len(names) > 0 && y.chance(50) {
		return y.of("*"+names[0], "[*"+names[0]+"]", "[*"+names[0]+", {}]")
	}
	part := newObject()
	for i, key := range v.keys {
		if y.chance(50) && len(part.keys) < 3 {
			part.add(key, v.items[i])
		}
	}
	if y.chance(30) {
		part.add(pick(y.random, memberNames), str("x"))
	}
	flow := y.flowText(part, "")
	return y.of(flow, flow, "["+flow+"]", "1", "null", "[]", "{}", "[1]", "\"x\"", "*nowhere")
}

func (y yamlText) element(item *value, member, pad string, indent int) string {
	if !item.isCollection() || len(item.items) == 0 || y.chance(y.flow) || y.chance(y.anchors) {
		return pad + "-" + y.member(item, member+"[]", indent)
	}
	inner := y.block(item, member+"[]", indent+2)
	return pad + "- " + strings.TrimPrefix(inner, pad+"  ")
}

// member is what stands behind "key:" or "-", with the line end.
func (y yamlText) member(v *value, member string, indent int) string {
	if names := y.known[member]; len(names) > 0 && y.chance(y.anchors) {
		return " *" + pick(y.random, names) + y.end()
	}
	properties := ""
	if y.chance(y.tags) {
		properties += " " + y.tag(v)
	}
	if y.chance(y.anchors) {
		*y.anchorCount++
		name := fmt.Sprintf("%s%d", y.of("a", "A-b", "x_"), *y.anchorCount)
		properties += " &" + name
		y.known[member] = append(y.known[member], name)
	}
	switch {
	case !v.isCollection():
		return properties + " " + y.scalar(v, true, indent) + y.end()
	case len(v.items) == 0 || y.chance(y.flow):
		return properties + " " + y.flowText(v, member) + y.end()
	case v.kind == array && y.chance(50):
		return properties + y.end() + y.block(v, member, indent)
	}
	return properties + y.end() + y.block(v, member, indent+y.step)
}

func (y yamlText) end() string {
	if y.chance(y.comments) {
		return y.of(" # comment\n", " #\n", "  \n", " # é: [\n", "\t# c\n")
	}
	return "\n"
}

func (y yamlText) tag(v *value) string {
	if y.chance(30) {
		return y.of("!", "!x", "!<tag:yaml.org,2002:str>", "!!binary", "!!timestamp", "!!null", "!!bool", "!!merge", "!!set", "!!omap", "!e!x",
			"!!", "!!float", "!!int", "!!str", "!!map", "!!seq", "!!x")
	}
	switch v.kind {
	case object:
		return "!!map"
	case array:
		return "!!seq"
	case text:
		return "!!str"
	}
	return y.of("!!int", "!!float", "!!bool", "!!str")
}

func (y yamlText) flowText(v *value, member string) string {
	if !v.isCollection() {
		return y.scalar(v, false, 0)
	}
	open, end := "[", "]"
	if v.kind == object {
		open, end = "{", "}"
	}
	var parts []string
	for i, item := range v.items {
		part := y.flowText(item, "")
		if v.kind == object {
			part = y.key(v.keys[i]) + ": " + part
		}
		parts = append(parts, part)
	}
	separator := y.of(", ", ", ", ",", " , ", ",\n   ")
	tail := ""
	if len(parts) > 0 && y.chance(5) {
		tail = ","
	}
	return open + strings.Join(parts, separator) + tail + end
}

func (y yamlText) scalar(v *value, blockAllowed bool, indent int) string {
	if v.kind == literal {
		if y.chance(y.oddNumbers) {
			return y.of(pick(y.random, yamlNumbers), pick(y.random, yamlNumbers), pick(y.random, edgeNumbers), "~", "", "yes", "No", "on", "True",
				"NULL", "2001-01-01", "!!int \""+v.text+"\"", "\""+v.text+"\"", "'"+v.text+"'", "!!str "+v.text, v.text+" # c", "!!int "+v.text,
				"!!float "+v.text)
		}
		return v.text
	}
	s := v.text
	if y.chance(y.oddPlain) {
		if y.chance(50) {
			return s
		}
		return pick(y.random, oddStrings)
	}
	lineless := !strings.ContainsAny(s, "\n\r\u0085\u2028\u2029\x00\x01\x1b\x7f")
	switch {
	case plainText.MatchString(s) && y.chance(65):
		if blockAllowed && strings.Contains(s, "/") && y.chance(2) {
			return strings.Replace(s, "/", "\n"+strings.Repeat(" ", indent+2)+"/", 1) // a folded plain scalar
		}
		return s
	case lineless && y.chance(35):
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	case blockAllowed && y.chance(12):
		return y.blockScalar(s, indent)
	}
	j := jsonText{random: y.random}
	if y.chance(10) {
		j.escapeAny = 20
	}
	if y.chance(3) {
		return strings.Replace(j.quote(s), "a", y.of("\\x61", "\\u0061", "\\U00000061", "a\\\n  ", "a\n  ", "\\e", "\\_", "\\N", "\\L", "\\P", "\\ ",
			"\\0", "\\a", "\\v", "\\z", "\\x6", "\\\t"), 1)
	}
	return j.quote(s)
}

func (y yamlText) blockScalar(s string, indent int) string {
	pad := strings.Repeat(" ", indent+1+y.IntN(3))
	header := y.of("|", "|-", "|+", ">", ">-", ">+")
	if y.chance(20) {
		header = y.of("|2", "|1-", ">-9", "|0", "| # c", "|- x", "|+2", ">2-", "|#c")
	}
	lines := strings.Split(s, "\n")
	return header + "\n" + pad + strings.Join(lines, "\n"+pad) + y.of("", "\n", "\n\n", "\n"+pad)
}
