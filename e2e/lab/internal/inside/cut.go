package inside

import (
	"fmt"
	"slices"
	"strconv"

	"cnmsql.co/operator/e2e/lab/internal/config"
)

// cut unplugs a node, or drops what it exchanges with one side.
func (c *root) cut(m *machine, from config.Side) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.pid == 0 {
		return fmt.Errorf("%s is not running", m.node.Name())
	}
	if from == "" {
		if err := c.reaper.Run("ip", "link", "set", m.node.Veth(), "down"); err != nil {
			return err
		}
		m.cut = true
		return nil
	}
	rules, err := config.CutRules(from)
	if err != nil || slices.Contains(m.cutFrom, from) {
		return err
	}
	if err := c.filter(m, rules); err != nil {
		return err
	}
	m.cutFrom = append(m.cutFrom, from)
	return nil
}

// heal undoes every cut of a node.
func (c *root) heal(m *machine) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.pid == 0 {
		return fmt.Errorf("%s is not running", m.node.Name())
	}
	if err := c.filter(m, config.HealRules()); err != nil {
		return err
	}
	m.cutFrom = nil
	if err := c.reaper.Run("ip", "link", "set", m.node.Veth(), "up"); err != nil {
		return err
	}
	m.cut = false
	// The kernel drops a route when its link goes down.
	return c.reaper.Run("ip", "route", "replace", m.node.PodCIDR(), "via", m.node.IP())
}

// filter changes a node's packet filter.
func (c *root) filter(m *machine, rules string) error {
	return c.reaper.Run("nsenter", "-t", strconv.Itoa(m.pid), "-n", "--", "nft", rules)
}
