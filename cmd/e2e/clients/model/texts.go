package model

import (
	"bytes"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// texts returns the string values of a JSON text, in order, up to the first invalid byte.
func texts(data []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		for {
			t, err := d.ReadToken()
			if err != nil {
				return
			}
			if t.Kind() != '"' {
				continue
			}
			text := t.String()
			if in, n := d.StackIndex(d.StackDepth()); in == '{' && n%2 == 1 {
				continue // a name
			}
			if !yield(text) {
				return
			}
		}
	}
}
