"""The notebook of the documentation, executed as its readers do."""

import pathlib

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

TOUR = pathlib.Path(__file__).parents[3] / "docs" / "python.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    notebook = nbformat.read(TOUR, as_version=4)
    nbformat.validate(notebook)
    place = {"metadata": {"path": str(tmp_path_factory.mktemp("tour"))}}
    return nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3", resources=place).execute()


def outputs_of(notebook, text):
    return next(cell.outputs for cell in notebook.cells if cell.cell_type == "code" and text in cell.source)


def html_of(output):
    return output.get("data", {}).get("text/html", "")


def test_the_notebook_is_kept_without_its_outputs():
    notebook = nbformat.read(TOUR, as_version=4)
    assert all(not cell.get("outputs") and not cell.get("execution_count") for cell in notebook.cells)


def test_relations_results_and_commands_show_themselves(executed):
    (table,) = [html_of(output) for output in outputs_of(executed, 'order("customer")')]
    assert "<th>orders</th>" in table and "<td>c6</td>" in table
    (changes,) = [html_of(output) for output in outputs_of(executed, "con.changes(")]
    assert "<th>kind</th>" in changes and "update" in changes
    assert "CREATE TABLE" in html_of(outputs_of(executed, "lstore.connect")[0])


def test_work_that_takes_long_draws_its_time(executed):
    drawn = [html_of(output) for output in outputs_of(executed, "pg_sleep") if output.output_type == "display_data"]
    # The bar that was there is empty in the end.
    assert drawn == [""] or any("pg_sleep" in text for text in drawn), outputs_of(executed, "pg_sleep")
