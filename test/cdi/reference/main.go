// cdi-reference answers by the reference library what ours is compared with.
//
//	cdi-reference generate --differences FILE [--seed N] [--count N]
//	    test cases with the reference's results, as JSON Lines
//	cdi-reference load DIR...
//	    what spec directories define; exit code 1 on any error
//	cdi-reference bench --inputs DIR
//	    times of the reference on the inputs of our benchmark
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	var err error
	switch os.Args[1] {
	case "generate":
		seed := flags.Uint64("seed", 1, "the same seed gives the same cases")
		count := flags.Int("count", 20000, "number of cases")
		path := flags.String("differences", "", "list of the differences that are allowed")
		_ = flags.Parse(os.Args[2:])
		var allowed differences
		if allowed, err = readDifferences(*path); err == nil {
			err = generate(os.Stdout, *seed, *count, allowed)
		}
	case "load":
		_ = flags.Parse(os.Args[2:])
		err = load(os.Stdout, flags.Args())
	case "bench":
		inputs := flags.String("inputs", "", "directory that our benchmark filled")
		_ = flags.Parse(os.Args[2:])
		err = bench(os.Stdout, *inputs)
	default:
		usage()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cdi-reference:", err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: cdi-reference generate|load|bench [options]")
	os.Exit(2)
}
