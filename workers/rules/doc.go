// Package rules runs the rules of packs, as the builtin "rules".
//
// A hook has many rules, and most of them do not match an event. So set.go first searches the event's
// texts for the keywords of all rules at once, and for texts that each match of a pattern has, which
// literal.go derives. Only the rules that remain are evaluated. texts.go returns the texts of an event.
//
// Only this module imports it.
package rules
