// Package result is what every load test ends with, whatever it tested: figures
// that another run can be compared with, checks that say whether everything was
// right, tables for people and plots of how it went. It is pure data: report
// draws it, compare holds two of them against each other.
//
// A run that has more to say embeds a [Document] in its own report: the members
// stand side by side in the JSON.
package result
