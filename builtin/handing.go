package builtin

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hookfabric/hookfabric/schema"
)

// separator is the line that sets off what the fabric says from what a tool said.
const separator = "============================================================"

// framed is text below a title, between separators.
func framed(title, text string) string {
	return separator + "\n" + title + "\n" + separator + "\n" + text + "\n" + separator
}

// strategyOf is where an item goes.
func strategyOf(it *schema.Item) schema.Strategy {
	if it.Strategy == "" {
		return schema.ToolResult
	}
	return it.Strategy
}

// apart reports whether an item's text is not at hand: it lies in the object
// store and is too large to be put into a text with others.
func apart(it *schema.Item) bool { return it.Content == "" && it.Object != nil }

// runs are neighbouring items that can be said in one text: they have one
// source and one strategy, and their text is at hand.
func runs(items []*schema.Item) (out [][]*schema.Item) {
	for i, it := range items {
		if i > 0 && !apart(it) && !apart(items[i-1]) && it.Source == items[i-1].Source && strategyOf(it) == strategyOf(items[i-1]) {
			out[len(out)-1] = append(out[len(out)-1], it)
		} else {
			out = append(out, []*schema.Item{it})
		}
	}
	return out
}

// said is an injection that says items, which must not be empty.
func said(content string, strategy schema.Strategy, items []*schema.Item) schema.Injection {
	in := schema.Injection{Content: content, Strategy: strategy, Source: items[0].Source}
	for _, it := range items {
		in.Sequences = append(in.Sequences, it.Sequence)
	}
	slices.Sort(in.Sequences)
	in.Sequence = in.Sequences[len(in.Sequences)-1]
	if len(items) == 1 {
		in.Sequences = nil
	}
	return in
}

// following are the injections that say an item whose text is not at hand: a
// lead that says what comes, and the text as a client fetches it.
func following(lead string, it *schema.Item) []schema.Injection {
	first := said(fmt.Sprintf("%s (%s; the text follows)", lead, bytesOf(it.Object.Size)), strategyOf(it), []*schema.Item{it})
	return []schema.Injection{first, textOf(it, strategyOf(it))}
}

// textOf is an injection that has an item's text once a client has fetched it.
func textOf(it *schema.Item, strategy schema.Strategy) schema.Injection {
	in := said("", strategy, []*schema.Item{it})
	in.Object = it.Object
	if it.Answer != nil {
		in.Folder = &schema.Folder{Name: it.Answer.Name, Path: it.Answer.Workspace}
	}
	return in
}

// handed renders items run by run. A lead names an item whose text follows.
func handed(items []*schema.Item, lead func(*schema.Item) string, text func([]*schema.Item) string) (out schema.Handout) {
	for _, run := range runs(items) {
		if it := run[0]; apart(it) {
			out.Injections = append(out.Injections, following(lead(it), it)...)
			continue
		}
		if s := text(run); s != "" {
			out.Injections = append(out.Injections, said(s, strategyOf(run[0]), run))
		}
	}
	return out
}

// plain is an item's text without anything around it, whichever form it has.
func plain(it *schema.Item) string {
	switch {
	case strings.TrimSpace(it.Content) != "":
		return strings.Trim(it.Content, "\n")
	case it.Subagent != nil:
		return subagentElement(it.Subagent)
	case it.Background != nil:
		return backgroundEntry(it.Background)
	case it.Answer != nil:
		return fmt.Sprintf("[%s] (this answer has no text)", it.Answer.Label)
	}
	return "(this message has no text)"
}

// indented is text with every line moved to the right, whatever ends the one
// before, so that no line of it can pass for one of the fabric's.
func indented(text, by string) string {
	text = strings.Trim(text, "\n")
	var b strings.Builder
	done := 0
	for at, line := range linesOf(text) {
		b.WriteString(text[done:at])
		if line != "" {
			b.WriteString(by)
		}
		b.WriteString(line)
		done = at + len(line)
	}
	b.WriteString(text[done:])
	return b.String()
}

// oneLine is text as it can stand in the midst of a line.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if schema.EndsLine(r) {
			return ' '
		}
		return r
	}, visible(text))
}

// cut is at most the first limit characters of text, and says so if that is
// not all. A limit of 0 is none.
func cut(text string, limit int) string {
	if limit <= 0 || len(text) <= limit {
		return text
	}
	all := utf8.RuneCountInString(text)
	if all <= limit {
		return text
	}
	runes := 0
	for at := range text {
		if runes == limit {
			text = text[:at]
			break
		}
		runes++
	}
	return fmt.Sprintf("%s… [cut: the first %d of %d characters]", text, limit, all)
}

// bytesOf is a size as a person reads it.
func bytesOf(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
