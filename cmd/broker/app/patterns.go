package app

import (
	"fmt"
	"io"
	"strings"

	"github.com/hookfabric/hookfabric/schema/match"
)

// warnOfMatcher prints what is probably wrong with a matcher of tools.
func warnOfMatcher(w io.Writer, matcher string) {
	if advice := match.Advice(matcher); advice != "" {
		fmt.Fprintf(w, "broker: warning: %s\n", advice)
	}
}

// warnOfAgents prints what is probably wrong with a pattern of agents.
func warnOfAgents(w io.Writer, pattern string) {
	if strings.ContainsAny(pattern, ",{}") || strings.HasPrefix(pattern, "!") {
		fmt.Fprintf(w, "broker: warning: --agent %.80q: a comma, braces and ! match themselves in the names of agents; separate alternatives with |\n", pattern)
	}
}
