package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
)

// generate writes the cases in order. Their files go to a memory file system if there is one.
func generate(out io.Writer, seed uint64, count int, allowed differences) error {
	base := ""
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		base = "/dev/shm"
	}
	root, err := os.MkdirTemp(base, "cdi-reference-")
	if err != nil {
		root, err = os.MkdirTemp("", "cdi-reference-")
	}
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)

	workers := runtime.GOMAXPROCS(0)
	type outcome struct {
		line []byte
		err  error
	}
	outcomes := make([]chan outcome, workers)
	for w := range workers {
		outcomes[w] = make(chan outcome, 64)
		go func() {
			dir := fmt.Sprintf("%s/%d", root, w)
			if err := os.Mkdir(dir, 0o755); err != nil {
				outcomes[w] <- outcome{err: err}
				return
			}
			for number := w; number < count; number += workers {
				line, err := generateOne(seed, uint64(number), dir, allowed)
				outcomes[w] <- outcome{line, err}
			}
		}()
	}
	buffered := bufio.NewWriterSize(out, 1<<20)
	for number := range count {
		o := <-outcomes[number%workers]
		if o.err != nil {
			return fmt.Errorf("case %d: %w", number, o.err)
		}
		if _, err := buffered.Write(o.line); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

func generateOne(seed, number uint64, dir string, allowed differences) ([]byte, error) {
	r := newRandom(seed, number)
	var c testCase
	var err error
	switch n := r.IntN(100); {
	case n < 15:
		c = r.nameCase()
	case n < 78:
		c, err = r.specCase(dir)
	default:
		c, err = r.injectCase(dir)
	}
	if err != nil {
		return nil, err
	}
	c.ID = fmt.Sprintf("generated-%d-%d", seed, number)
	c.Title = c.ID
	if err := allowed.check(c); err != nil {
		return nil, err
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(c); err != nil {
		return nil, err
	}
	return line.Bytes(), nil
}
