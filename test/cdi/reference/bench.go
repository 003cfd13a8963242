package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

// Long enough to average over garbage collections, which belong to the cost.
const benchTime = time.Second

type benchResult struct {
	Name       string `json:"name"`
	NsPerOp    int64  `json:"ns_per_op"`
	Iterations int    `json:"iterations"`
}

// measure calls batch, which returns how long how many operations took, until enough time went by.
func measure(name string, batch func() (time.Duration, int, error)) (benchResult, error) {
	if _, _, err := batch(); err != nil { // warms up
		return benchResult{}, fmt.Errorf("%s: %w", name, err)
	}
	var total time.Duration
	var iterations int
	for total < benchTime {
		elapsed, n, err := batch()
		if err != nil {
			return benchResult{}, fmt.Errorf("%s: %w", name, err)
		}
		total += elapsed
		iterations += n
	}
	return benchResult{name, total.Nanoseconds() / int64(iterations), iterations}, nil
}

// repeat makes a batch of n calls.
func repeat(n int, operation func() error) func() (time.Duration, int, error) {
	return func() (time.Duration, int, error) {
		start := time.Now()
		for range n {
			if err := operation(); err != nil {
				return 0, 0, err
			}
		}
		return time.Since(start), n, nil
	}
}

// parseInMemory does what ReadSpec does without the file: the library exports validation only
// together with reading, so it is done part by part.
func parseInMemory(text []byte) error {
	raw, err := cdi.ParseSpec(text)
	if err != nil {
		return err
	}
	if raw == nil {
		return errors.New("no spec")
	}
	return validateParsed(raw)
}

func bench(out io.Writer, inputs string) error {
	if inputs == "" {
		return errors.New("bench: --inputs is missing")
	}
	claim := filepath.Join(inputs, "claim.json")
	text, err := os.ReadFile(claim)
	if err != nil {
		return err
	}
	config, err := os.ReadFile(filepath.Join(inputs, "config.json"))
	if err != nil {
		return err
	}
	names, err := os.ReadFile(filepath.Join(inputs, "devices.txt"))
	if err != nil {
		return err
	}
	devices := strings.Fields(string(names))
	scanDir := filepath.Join(inputs, "scan")
	cache, err := cdi.NewCache(cdi.WithAutoRefresh(false), cdi.WithSpecDirs(scanDir))
	if err != nil {
		return err
	}
	// The devices of devices.txt are those of claim.json.
	claimDir, err := os.MkdirTemp("", "cdi-reference-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(claimDir)
	if err := os.WriteFile(filepath.Join(claimDir, "claim.json"), text, 0o644); err != nil {
		return err
	}
	claims, err := cdi.NewCache(cdi.WithAutoRefresh(false), cdi.WithSpecDirs(claimDir, scanDir))
	if err != nil {
		return err
	}
	inject := func(spec *oci.Spec) error {
		_, err := claims.InjectDevices(spec, devices...)
		return err
	}

	const batchSize = 100
	benches := []struct {
		name  string
		batch func() (time.Duration, int, error)
	}{
		{"parse_memory", repeat(batchSize, func() error { return parseInMemory(text) })},
		{"parse_file", repeat(batchSize, func() error {
			_, err := cdi.ReadSpec(claim, 0)
			return err
		})},
		{"scan", repeat(1, func() error {
			fresh, err := cdi.NewCache(cdi.WithAutoRefresh(false), cdi.WithSpecDirs(scanDir))
			if err == nil && len(fresh.ListDevices()) == 0 {
				err = errors.New("no devices in " + scanDir)
			}
			return err
		})},
		{"refresh", repeat(1, cache.Refresh)},
		{"inject", func() (time.Duration, int, error) {
			specs := make([]oci.Spec, batchSize)
			for i := range specs {
				if err := json.Unmarshal(config, &specs[i]); err != nil {
					return 0, 0, err
				}
			}
			start := time.Now()
			for i := range specs {
				if err := inject(&specs[i]); err != nil {
					return 0, 0, err
				}
			}
			return time.Since(start), batchSize, nil
		}},
		{"inject_json", repeat(batchSize, func() error {
			var spec oci.Spec
			if err := json.Unmarshal(config, &spec); err != nil {
				return err
			}
			if err := inject(&spec); err != nil {
				return err
			}
			_, err := json.Marshal(&spec)
			return err
		})},
	}
	encoder := json.NewEncoder(out)
	for _, b := range benches {
		result, err := measure(b.name, b.batch)
		if err != nil {
			return err
		}
		if err := encoder.Encode(result); err != nil {
			return err
		}
	}
	return nil
}
