package program

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

func TestATerminalReceivesNoControlSequences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.OneOf(rapid.String(), rapid.Just("\x1b[2J\u009b31m ü \u202e€\U000e0041")).Draw(t, "text"))
		var out bytes.Buffer
		w := Terminal(&out)
		for at := 0; at < len(text); {
			n := rapid.IntRange(1, len(text)-at).Draw(t, "piece")
			if got, err := w.Write(text[at : at+n]); got != n || err != nil {
				t.Fatal(got, err)
			}
			at += n
		}
		if want := schema.VisibleText(string(text)); out.String() != want {
			t.Fatalf("%q is written as %q, want %q", text, out.String(), want)
		}
	})
}

func TestAMessageTakesOneLine(t *testing.T) {
	var out bytes.Buffer
	fmt.Fprintf(Messages(&out), "agentshim: %s\n", "a\nagentshim: forged\x1b[31m")
	if got, want := out.String(), `agentshim: a\nagentshim: forged\x1b[31m`+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRawReturnsTheWriterOfATerminal(t *testing.T) {
	var out bytes.Buffer
	if w := Terminal(&out); Raw(w) != io.Writer(&out) || Terminal(w) != w || Raw(&out) != io.Writer(&out) {
		t.Error("another writer")
	}
}
