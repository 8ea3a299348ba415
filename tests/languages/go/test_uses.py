"""What Go names refer to, within a package and in others."""

from testing.references.reference_world import ReferenceWorld

from clean_room_agent.languages.base import Reach
from clean_room_agent.languages.go.packages import GoPackages, package_names

MODULES = {"go.mod": "module example.com/shop/v2\n\ngo 1.22\n"}
FILES = {
    "items/item.go": """package items
type Item struct { price int }
func (i *Item) Price() int { return i.price }
func New(price int) *Item { return &Item{price: price} }
""",
    "cart.go": """package shop
import (
	"fmt"
	"example.com/shop/v2/items"
)
type Base struct{}
func (b Base) Name() string { return "" }
type Cart struct {
	Base
	held []*items.Item
	byName map[string]Cart
}
func (c *Cart) First() *items.Item { return c.held[0] }
func (c *Cart) Total() int {
	sum := 0
	for _, item := range c.held { sum += item.Price() }
	return sum + c.First().Price() + limit
}
""",
    "shop.go": """package shop
const limit = 3
func (c *Cart) Add(other interface{}) error {
	cart, err := open(c.Name())
	if again, ok := other.(*Cart); ok { again.Total() }
	switch of := other.(type) {
	case *Cart: of.First()
	case int, string: of.Total()
	}
	func(items []Cart) { items[0].Total() }(nil)
	cart.byName["x"].Add(Cart{})
	return err
}
func open(name string) (*Cart, error) { limit := new(Cart); return limit, nil }
""",
    "shop_test.go": """package shop
import "testing"
func TestAdd(t *testing.T) { helper(t); (&Cart{}).Add(nil) }
func helper(t *testing.T) { t.Fatal(limit) }
""",
}


def test_names_of_a_package_are_found_in_all_its_files_and_those_of_others_by_its_path() -> None:
    world = ReferenceWorld(FILES, MODULES)
    assert world.references("cart.go") == [
        "Base.Name -> Base name 1",
        "Cart -> Base name 1",
        "Cart -> items/item.go:Item attribute 0.95",
        "Cart.First -> Cart name 1",
        "Cart.First -> items/item.go:Item attribute 0.95",
        "Cart.Total -> Cart name 1",
        "Cart.Total -> Cart.First call 0.85",
        "Cart.Total -> items/item.go:Item.Price call 0.85",
        "Cart.Total -> shop.go:limit name 1",
    ]
    assert world.references("shop.go") == [
        "Cart.Add -> Cart.Add call 0.85",
        "Cart.Add -> cart.go:Base.Name call 0.85",
        "Cart.Add -> cart.go:Cart name 1",
        "Cart.Add -> cart.go:Cart.First call 0.85",
        "Cart.Add -> cart.go:Cart.Total call 0.85",
        "Cart.Add -> open call 1",
        "open -> cart.go:Cart name 1",
    ]


def test_a_file_depends_on_the_files_that_define_what_it_takes() -> None:
    assert ReferenceWorld(FILES, MODULES).resolve("cart.go").dependencies == (("items/item.go", "import"),)


def test_tests_see_each_other_and_nobody_sees_them() -> None:
    world = ReferenceWorld(FILES | {"more_test.go": "package shop\nfunc more() { helper(nil) }\n"}, MODULES)
    assert "more -> shop_test.go:helper call 1" in world.references("more_test.go")
    blind = ReferenceWorld(FILES | {"other.go": "package shop\nfunc other() { helper(nil) }\n"}, MODULES)
    assert blind.references("other.go") == []


def test_the_longest_module_counts_and_a_vendored_or_foreign_one_is_not_here() -> None:
    texts = {"go.mod": "module a.b/c\n", "sub/go.mod": 'module "a.b/c/sub" // nested\n'}
    packages = GoPackages(["main.go", "sub/x.go", "sub/in/y.go", *texts], texts.get)
    found = [
        packages.find("main.go", target) for target in ("a.b/c", "a.b/c/sub", "a.b/c/sub/in", "a.b/cc", "fmt")
    ]
    assert [one and one.files for one in found] == [("main.go",), ("sub/x.go",), ("sub/in/y.go",), None, None]


def test_a_file_concerns_its_folder_and_those_who_import_it() -> None:
    texts = {"go.mod": "module a.b/shop\n"}
    packages = GoPackages(["main.go", "in/y.go", *texts], texts.get)
    assert packages.reach("in/z.go") == Reach(frozenset({"in"}), frozenset({"in"}))
    assert packages.reach("z.go") == Reach(frozenset({"shop"}), frozenset({""}))
    assert packages.reach("go.mod").everything
    assert packages.reach("z.py") == Reach()


def test_a_package_is_called_by_the_end_of_its_path() -> None:
    assert package_names("example.com/shop/v2") == ("shop",)
    assert package_names("gopkg.in/yaml.v3") == ("yaml",)
    assert package_names("github.com/mattn/go-isatty") == ("go_isatty", "isatty")
