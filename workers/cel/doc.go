// Package cel runs hooks of type cel: CEL expressions over the event that decide, rewrite and inject.
//
// Their options are in [Load], which compiles them. An expression that fails is an error of the hook,
// so that its failure policy decides.
//
// Only this module imports it.
package cel
