// Package gen draws events, configurations and the answers of hooks for property tests, legal and
// illegal ones in every combination. [Cases] draws a whole call; the other generators draw its
// parts. The same draw serves the model, by [Table.Script], and a real worker that answers by it.
//
// By default, rapid tries 100 cases. A package that needs more sets the number once:
//
//	func TestMain(m *testing.M) {
//		gen.Checks(2_000)
//		os.Exit(m.Run())
//	}
//
// The flag -rapid.checks and the variable RAPID_CHECKS take precedence. With -count=20, the 2,000
// cases are spread over the twenty runs.
package gen

import (
	"flag"
	"os"
	"strconv"
)

// Checks sets how many cases rapid tries, unless the command line or RAPID_CHECKS sets it. With
// -count the cases are spread over the runs, since each run draws others. Call it in TestMain,
// before m.Run.
func Checks(n int) {
	flag.Parse()
	_, given := os.LookupEnv("RAPID_CHECKS")
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if given {
		return
	}
	if f := flag.Lookup("test.count"); f != nil {
		if runs, err := strconv.Atoi(f.Value.String()); err == nil && runs > 1 {
			n = max(n/runs, 1)
		}
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
		panic(err) // the flag is rapid's own and takes any number
	}
}
