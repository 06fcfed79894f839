package sim

// Mutant is the rules with one guard removed.
type Mutant struct {
	// Name is the guard that is missing.
	Name string
	// Rules makes them.
	Rules func() *Rules
}

// Mutants is all of them.
var Mutants = []Mutant{}

// FindMutant finds one by name.
func FindMutant(name string) (Mutant, bool) {
	for _, m := range Mutants {
		if m.Name == name {
			return m, true
		}
	}
	return Mutant{}, false
}
