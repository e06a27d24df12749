// Submits the login form when a link is opened. A program that only previews links runs no script,
// and so does not use the link up.

document.querySelector("form[data-login]").requestSubmit();
