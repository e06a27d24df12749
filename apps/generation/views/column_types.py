"""The types of columns and the groups of settings as the editor offers them."""

# (group, (type, label, what it is in a few words, help))
COLUMN_TYPES = (
    ("Written by the model", (
        ("text", "Text", "from a prompt", "The model writes free text from the prompt."),
        ("structured", "Fields", "several fields at once",
         "The model fills in named fields, such as a text and its label. The server enforces the "
         "types."),
        ("judge", "Judge", "a score with a reason",
         "The model scores its own output in the same conversation. Rows with low scores are "
         "rejected."),
    )),
    ("Random", (
        ("category", "Category", "values, weights, quotas",
         "One of your values, picked evenly, by weight or by quota."),
        ("subcategory", "Sub-category", "depends on a column",
         "One of your values, chosen by the value of another column."),
        ("number", "Number", "range or bell curve", "A random number in a range."),
        ("date", "Date", "between two days", "A random date in a range."),
        ("uuid", "Identifier", "random UUID", "A random UUID in each row."),
        ("persona", "Persona", "from a list of people",
         "One of a list of people that the model writes once. Makes texts more diverse."),
    )),
    ("From real data", (
        ("seed", "Seed rows", "from a dataset or file",
         "A row from a dataset or file, to imitate or to ask about."),
    )),
    ("Computed", (
        ("expression", "Expression", "from the columns above",
         "Computed from the columns above, without the model."),
    )),
)  # fmt: skip

# (name, label)
SETTING_GROUPS = (
    ("system", "System prompt"),
    ("size", "How many"),
    ("variety", "Variety"),
    ("reject", "Reject"),
    ("limits", "Limits"),
)
