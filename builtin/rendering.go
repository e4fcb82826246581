package builtin

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hookfabric/hookfabric/schema"
)

// separator is the line between text of the fabric and text of a tool.
const separator = "============================================================"

// framed puts text below a title, between separators.
func framed(title, text string) string {
	return separator + "\n" + title + "\n" + separator + "\n" + text + "\n" + separator
}

// strategyOf returns where an item's injection goes.
func strategyOf(it *schema.Item) schema.Strategy {
	if it.Strategy == "" {
		return schema.ToolResult
	}
	return it.Strategy
}

// apart reports whether an item's text is in the object store, because it is too large to
// share one text with other items.
func apart(it *schema.Item) bool { return it.Content == "" && it.Object != nil }

// runs groups neighbouring items that can share one text: they have the same source and
// strategy, and their text is in the item.
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

// injectionOf makes the injection that delivers items, of which there must be at least
// one.
func injectionOf(content string, strategy schema.Strategy, items []*schema.Item) schema.Injection {
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

// following makes the injections for an item in the object store: a lead that announces
// the text, and the text as the client fetches it.
func following(lead string, it *schema.Item) []schema.Injection {
	first := injectionOf(fmt.Sprintf("%s (%s; the text follows)", lead, bytesOf(it.Object.Size)), strategyOf(it), []*schema.Item{it})
	return []schema.Injection{first, textOf(it, strategyOf(it))}
}

// textOf makes an injection whose text the client fetches from the object store.
func textOf(it *schema.Item, strategy schema.Strategy) schema.Injection {
	in := injectionOf("", strategy, []*schema.Item{it})
	in.Object = it.Object
	if it.Answer != nil {
		in.Folder = &schema.Folder{Name: it.Answer.Name, Path: it.Answer.Workspace}
	}
	return in
}

// rendered renders items run by run. The lead announces an item whose text follows.
func rendered(items []*schema.Item, lead func(*schema.Item) string, text func([]*schema.Item) string) (out schema.Handout) {
	for _, run := range runs(items) {
		if it := run[0]; apart(it) {
			out.Injections = append(out.Injections, following(lead(it), it)...)
			continue
		}
		if s := text(run); s != "" {
			out.Injections = append(out.Injections, injectionOf(s, strategyOf(run[0]), run))
		}
	}
	return out
}

// plain returns an item's text without a frame, for all kinds of items.
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

// indented moves every line of text to the right, for all line endings, so that no line
// looks like one of the fabric's.
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

// oneLine makes text fit into one line.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if schema.EndsLine(r) {
			return ' '
		}
		return r
	}, visible(text))
}

// cut returns the first limit characters of text, and marks the cut. With a limit of 0 it
// returns all.
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

// bytesOf formats a size for people.
func bytesOf(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
