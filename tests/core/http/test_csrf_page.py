from django.test import Client


def test_a_form_without_its_token_is_refused_with_what_to_do() -> None:
    browser = Client(enforce_csrf_checks=True)
    answer = browser.post("/login/", {"username": "ada", "password": "secret"})
    assert answer.status_code == 403
    page = answer.content.decode()
    assert "This form has expired" in page
    assert "reload the page" in page
    assert "CSRF" not in page
