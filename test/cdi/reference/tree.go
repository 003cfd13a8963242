package main

import "strings"

type kind int

const (
	object kind = iota
	array
	text    // a string
	literal // a number, true, false or null, as it is spelled
)

// value is a document before it is spelled. Unlike a map it may hold a key twice.
type value struct {
	kind  kind
	text  string
	keys  []string // of an object; items[i] belongs to keys[i]
	items []*value
}

func str(s string) *value           { return &value{kind: text, text: s} }
func lit(s string) *value           { return &value{kind: literal, text: s} }
func list(items ...*value) *value   { return &value{kind: array, items: items} }
func newObject() *value             { return &value{kind: object} }
func (v *value) isCollection() bool { return v.kind == object || v.kind == array }
func strs(texts ...string) *value {
	v := list()
	for _, s := range texts {
		v.items = append(v.items, str(s))
	}
	return v
}

func (v *value) add(key string, item *value) *value {
	v.keys = append(v.keys, key)
	v.items = append(v.items, item)
	return v
}

func (v *value) get(key string) *value {
	for i, k := range v.keys {
		if k == key {
			return v.items[i]
		}
	}
	return nil
}

func (v *value) remove(i int) {
	v.items = append(v.items[:i], v.items[i+1:]...)
	if v.kind == object {
		v.keys = append(v.keys[:i], v.keys[i+1:]...)
	}
}

func (v *value) copy() *value {
	c := *v
	c.keys = append([]string{}, v.keys...)
	c.items = nil
	for _, item := range v.items {
		c.items = append(c.items, item.copy())
	}
	return &c
}

// slot is a place in a document.
type slot struct {
	parent *value
	index  int
}

func (s slot) get() *value  { return s.parent.items[s.index] }
func (s slot) set(v *value) { s.parent.items[s.index] = v }

// slots lists every place below v.
func (v *value) slots() []slot {
	var all []slot
	for i, item := range v.items {
		all = append(all, slot{v, i})
		all = append(all, item.slots()...)
	}
	return all
}

// padding for long strings, kept moderate: the cases go through a file.
func long(n int) string { return strings.Repeat("a", n) }
