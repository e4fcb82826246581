package e2e_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A selected is what a PromQL expression asks of one metric.
type selected struct {
	metric string
	labels []string // that it is matched by
}

// A promql is what an expression is about. It is no parser: promtool is that,
// where there is one.
type promql struct {
	selected []selected
	grouped  []string // the labels of by, without, on and their like
}

var promToken = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[A-Za-z_:][\w:]*|[0-9.]+[a-z]*|=~|!~|!=|[-+*/%^=<>(){},]`)

// metricsOf reads an expression.
func metricsOf(expr string) (q promql) {
	words := promToken.FindAllString(expr, -1)
	for i := 0; i < len(words); i++ {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch word := words[i]; {
		case isOneOf(word, "by", "without", "on", "ignoring", "group_left", "group_right"):
			if next != "(" {
				continue // of a join, without labels
			}
			for i += 2; i < len(words) && words[i] != ")"; i++ {
				if words[i] != "," {
					q.grouped = append(q.grouped, words[i])
				}
			}
		case isOneOf(word, "and", "or", "unless", "bool", "offset", "inf", "nan"), !isName(word), next == "(":
		default:
			s := selected{metric: word}
			if next == "{" {
				for i += 2; i < len(words) && words[i] != "}"; i++ {
					if isName(words[i]) {
						s.labels = append(s.labels, words[i])
					}
				}
			}
			q.selected = append(q.selected, s)
		}
		// A word before a list of labels may be an aggregation: sum by (event) (…).
		if len(q.selected) > 0 && isOneOf(next, "by", "without") && q.selected[len(q.selected)-1].metric == words[i] {
			q.selected = q.selected[:len(q.selected)-1]
		}
	}
	return q
}

func isName(word string) bool { return word[0] == '_' || word[0] == ':' || isLetter(word[0]) }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isOneOf(word string, all ...string) bool { return slices.Contains(all, strings.ToLower(word)) }

func TestExpressionsAreRead(t *testing.T) {
	for _, c := range []struct {
		name, expr string
		want       promql
	}{
		{"a metric alone", `up`, promql{selected: []selected{{metric: "up"}}}},
		{"matchers, and words in strings", `a{x="y{z}",b=~"c|d"}`, promql{selected: []selected{{metric: "a", labels: []string{"x", "b"}}}}},
		{"an aggregation with its labels before", `sum by (p, q) (rate(a_total[5m]))`,
			promql{selected: []selected{{metric: "a_total"}}, grouped: []string{"p", "q"}}},
		{"an aggregation with its labels behind", `max(a) by (p) > 14.4 * 0.001`,
			promql{selected: []selected{{metric: "a"}}, grouped: []string{"p"}}},
		{"recorded names, and operators between vectors", `a:b:rate5m and on (x) c unless d == bool 1`,
			promql{selected: []selected{{metric: "a:b:rate5m"}, {metric: "c"}, {metric: "d"}}, grouped: []string{"x"}}},
		{"a join without labels", `a / on (x) group_left b`, promql{selected: []selected{{metric: "a"}, {metric: "b"}}, grouped: []string{"x"}}},
		{"numbers and variables of ranges", `1 - increase(a[$__rate_interval]) / 1e3`, promql{selected: []selected{{metric: "a"}}}},
	} {
		if diff := cmp.Diff(c.want, metricsOf(c.expr), cmp.AllowUnexported(promql{}, selected{})); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", c.name, c.expr, diff)
		}
	}
}
