"""The stub hookfabric/__init__.pyi has the names and arguments of the modules."""

import ast
import inspect
import os
import unittest

import hookfabric


def declared(node):
    """The parameters of a function in the stub, with the text of their defaults."""
    spec = node.args
    missing = len(spec.args) - len(spec.defaults)
    names = [(one.arg, None if i < missing else ast.unparse(spec.defaults[i - missing])) for i, one in enumerate(spec.args)]
    return names + [("**" + spec.kwarg.arg, None)] if spec.kwarg else names


def defined(function):
    """The parameters of a function in the module, in the same form."""
    rows = []
    for one in inspect.signature(function).parameters.values():
        name = "**" + one.name if one.kind is one.VAR_KEYWORD else one.name
        rows.append((name, None if one.default is one.empty else repr(one.default)))
    return rows


class Stub(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(os.path.dirname(hookfabric.__file__), "__init__.pyi"), encoding="utf-8") as f:
            self.tree = ast.parse(f.read())

    def test_all_names_are_declared(self):
        names = {node.name for node in self.tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        self.assertEqual(names, set(hookfabric.__all__))

    def test_functions_have_the_same_arguments(self):
        compared = 0
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef):
                self.assertEqual(declared(node), defined(getattr(hookfabric, node.name)), node.name)
                compared += 1
        self.assertGreaterEqual(compared, 5)

    def test_classes_have_the_same_members(self):
        for node in self.tree.body:
            if not isinstance(node, ast.ClassDef):
                continue
            found = getattr(hookfabric, node.name)
            for member in node.body:
                with self.subTest(f"{node.name}: {ast.unparse(member)}"):
                    self.compare(found, member)

    def compare(self, found, member):
        if isinstance(member, ast.FunctionDef):
            there = inspect.getattr_static(found, member.name)
            if isinstance(there, property):
                self.assertEqual(ast.unparse(member.decorator_list[0]), "property")
                return
            function = there.__func__ if isinstance(there, classmethod) else there
            self.assertEqual(declared(member), defined(function))
        elif isinstance(member, ast.Assign):  # a member of an enumeration
            self.assertEqual(ast.literal_eval(member.value), found[member.targets[0].id].value)
        elif isinstance(member, ast.AnnAssign) and hasattr(found, "_fields"):
            self.assertIn(member.target.id, found._fields)

    def test_enumerations_are_complete(self):
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and any(isinstance(member, ast.Assign) for member in node.body):
                names = [member.targets[0].id for member in node.body if isinstance(member, ast.Assign)]
                self.assertEqual(names, list(getattr(hookfabric, node.name).__members__), node.name)


if __name__ == "__main__":
    unittest.main()
