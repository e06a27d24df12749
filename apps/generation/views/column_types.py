"""The kinds of columns as the editor offers them."""

# (group, (kind, label, what it is, with an example))
COLUMN_TYPES = (
    ("Written by the model", (
        ("text", "Text", "The model writes free text: “Write a ticket about {{ topic }}.”"),
        ("structured", "Fields", "The model fills in named fields, such as a text and its label. "
         "The server enforces the types."),
        ("judge", "Judge", "The model scores the row from 1 to 5, “Is it realistic?”, and low "
         "scores reject it."),
    )),
    ("Random", (
        ("category", "Category", "One of your values, picked evenly or by weight: positive, "
         "negative."),
        ("number", "Number", "A random number in a range, such as an age from 18 to 90."),
        ("date", "Date", "A random date in a range, such as last year."),
        ("uuid", "Identifier", "A random UUID, such as an order number."),
        ("persona", "Persona", "One of a list of people that the model writes once: “a retired "
         "teacher who types slowly”. Makes texts more diverse."),
    )),
    ("From real data", (
        ("seed", "Seed rows", "A row from a dataset or file, used as an example to imitate or a "
         "passage to ask about: {{ example_text }}."),
    )),
    ("Computed", (
        ("expression", "Expression", "Computed from the columns above, without the model: "
         "'angry' if stars < 3 else 'happy'."),
    )),
)  # fmt: skip
