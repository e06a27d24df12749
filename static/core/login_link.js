// A person who opened a login link wants in: the form is sent for them. What only looks at links,
// to show a preview of them, runs no script and so does not use the link up.

document.querySelector("form[data-login]").requestSubmit();
