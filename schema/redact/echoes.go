package redact

import (
	"slices"
	"strings"
)

const (
	// leastEcho is the shortest removed text that is also searched elsewhere. Shorter
	// ones are part of many words.
	leastEcho = 4
	// mostOfOne is the searched length of a text. A longer text counts as found after it.
	mostOfOne = 1 << 10
	// mostEchoes limits the searched texts of one document, in bytes.
	mostEchoes = 1 << 20
)

// Echoes are the texts that [Rules.Clean] removed, which may also appear in other text. It
// searches for all of them in one pass, with the algorithm of Aho and Corasick. Nil Echoes
// search for nothing.
type Echoes struct {
	nodes []node // of the tree of all texts; the first is its root
	roots [256]int32
	// all means that there are too many texts to search, and nothing is kept.
	all bool
}

// A node is a node of the tree. The letters on its path begin some texts.
type node struct {
	child, sibling int32 // the first child, and the next one of the same parent; 0: none
	fallback       int32 // the node of the longest suffix of these letters
	length         int32 // of the longest text that ends here; 0: none
	rest           int32 // the length of the text that follows and is not searched
	letter         byte
}

// Everything returns Echoes that remove every text. Use it for text next to a document that
// could not be searched.
func Everything() *Echoes { return &Echoes{all: true} }

// newEchoes returns the Echoes of texts.
func newEchoes(texts []string) *Echoes {
	if len(texts) == 0 {
		return nil
	}
	slices.Sort(texts)
	e := &Echoes{nodes: make([]node, 1)}
	path, before := []int32{0}, "" // the nodes from the root to the end of the previous text
	sum := 0
	for _, text := range slices.Compact(texts) {
		letters := text[:min(len(text), mostOfOne)]
		if sum += len(letters); sum > mostEchoes {
			return Everything()
		}
		path, before = e.add(path, common(before, letters), letters), letters
		end := &e.nodes[path[len(letters)]]
		end.length, end.rest = int32(len(letters)), max(end.rest, int32(len(text)-len(letters)))
	}
	e.link()
	return e
}

// common returns the length of the common prefix.
func common(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// add adds a text that shares known letters with the previous, smaller one, so a new
// child is always the last one of its parent.
func (e *Echoes) add(path []int32, known int, letters string) []int32 {
	elder := int32(0)
	if known+1 < len(path) {
		elder = path[known+1]
	}
	path = path[:known+1]
	for _, letter := range []byte(letters[known:]) {
		next := int32(len(e.nodes))
		e.nodes = append(e.nodes, node{letter: letter})
		if elder != 0 {
			e.nodes[elder].sibling = next
		} else {
			e.nodes[path[len(path)-1]].child = next
		}
		path, elder = append(path, next), 0
	}
	return path
}

// link sets every node's fallback, from the root down.
func (e *Echoes) link() {
	queue := make([]int32, 0, len(e.nodes))
	for c := e.nodes[0].child; c != 0; c = e.nodes[c].sibling {
		e.roots[e.nodes[c].letter] = c
		queue = append(queue, c)
	}
	for i := 0; i < len(queue); i++ {
		for c := e.nodes[queue[i]].child; c != 0; c = e.nodes[c].sibling {
			n := &e.nodes[c]
			n.fallback = e.step(e.nodes[queue[i]].fallback, n.letter)
			behind := &e.nodes[n.fallback]
			n.rest = max(n.rest, behind.rest)
			if n.length == 0 {
				n.length = behind.length
			}
			queue = append(queue, c)
		}
	}
}

// step returns the node that follows for a letter.
func (e *Echoes) step(at int32, letter byte) int32 {
	for ; at != 0; at = e.nodes[at].fallback {
		for c := e.nodes[at].child; c != 0; c = e.nodes[c].sibling {
			if e.nodes[c].letter == letter {
				return c
			}
		}
	}
	return e.roots[letter]
}

// A span is a part of a text.
type span struct{ from, to int }

// find returns the positions of the texts in s, in order.
func (e *Echoes) find(s string) (found []span) {
	at := int32(0)
	for i := range len(s) {
		at = e.step(at, s[i])
		n := &e.nodes[at]
		if n.length == 0 {
			continue
		}
		next := span{i + 1 - int(n.length), min(i+1+int(n.rest), len(s))}
		for len(found) > 0 && found[len(found)-1].to > next.from { // they overlap, and both are removed
			last := found[len(found)-1]
			next = span{min(last.from, next.from), max(last.to, next.to)}
			found = found[:len(found)-1]
		}
		found = append(found, next)
	}
	return found
}

// Without returns s without the texts.
func (e *Echoes) Without(s string) string {
	if e == nil || s == "" {
		return s
	}
	if e.all {
		return Removed
	}
	found := e.find(s)
	if len(found) == 0 {
		return s
	}
	var b strings.Builder
	end := 0
	for _, f := range found {
		b.WriteString(s[end:f.from])
		b.WriteString(Removed)
		end = f.to
	}
	b.WriteString(s[end:])
	return b.String()
}
