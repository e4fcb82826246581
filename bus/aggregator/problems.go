package aggregator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// An answer has to fit into a message, and people have to read it, while each
// node of a fleet may lack each program of a file.
const (
	// maxOfNode bounds the problems that an answer lists of one node. After maxProblems, the answer
	// lists no further node.
	maxOfNode   = 20
	maxProblems = 400
	// maxProblem bounds the bytes of one problem.
	maxProblem = 1 << 10
)

// told returns the problems that an answer lists: some of each node, and how many more there are.
// The problems of a node must be adjacent.
func told(all []schema.Problem) []schema.Problem {
	var some []schema.Problem
	for len(all) > 0 {
		node := all[0].Node
		if len(some) >= maxProblems {
			return append(some, schema.Problem{Node: node, Error: fmt.Sprintf("this and %d more problems, of this node and others, are not listed", len(all)-1)})
		}
		n := slices.IndexFunc(all, func(p schema.Problem) bool { return p.Node != node })
		if n < 0 {
			n = len(all)
		}
		for _, p := range all[:min(n, maxOfNode)] {
			p.Error = strings.ToValidUTF8(p.Error[:min(len(p.Error), maxProblem)], "")
			some = append(some, p)
		}
		if n > maxOfNode {
			some = append(some, schema.Problem{Node: node, Error: fmt.Sprintf("%d more problems of this node are not listed", n-maxOfNode)})
		}
		all = all[n:]
	}
	return some
}
