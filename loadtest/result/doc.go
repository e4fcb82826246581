// Package result is the report of every load test: figures that can be compared with those
// of another run, checks that every answer was right, tables, and plots. It is pure data:
// package report draws it, and package compare compares two reports.
//
// A run with more data embeds a [Document] in its own report; the members are side by side
// in the JSON.
package result
