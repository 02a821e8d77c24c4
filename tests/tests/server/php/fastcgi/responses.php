<?php
require 'gate.php';
switch ($_GET['do']) {
    case 'redirect':
        header('Location: /elsewhere?x=1');
        header('Set-Cookie: a=b; path=/');
        break;
    case '404':
        http_response_code(404);
        echo 'nothing here';
        break;
    case '500':
        http_response_code(500);
        break;
    case 'teapot':
        header("HTTP/1.1 418 I'm a teapot");
        echo 'short and stout';
        break;
    case 'fine':
        header('HTTP/1.1 200 Fine');
        echo 'fine';
        break;
    case 'empty':
        http_response_code(204);
        break;
    case 'not-modified':
        http_response_code(304);
        break;
    case 'large':
        for ($i = 0; $i < 30; $i++) {
            echo str_repeat('x', 100000);
        }
        break;
    case 'length':
        header('Content-Length: 5');
        echo 'hello';
        break;
    case 'hint':
        if (function_exists('headers_send')) {
            header('Link: </a.css>; rel=preload');
            headers_send(103);
        }
        echo 'after a hint';
        break;
    case 'hash':
        $body = file_get_contents('php://input');
        echo strlen($body), ' ', strlen(trim($body, 'b')) === 0 ? 15 : 0;
        break;
    case 'upload':
        echo $_FILES['file']['name'], ' ', filesize($_FILES['file']['tmp_name']);
        break;
    case 'finish':
        echo 'early';
        fastcgi_finish_request();
        gate('finished');
        mark('went-on');
        break;
    case 'echo':
        echo $_GET['n'];
        break;
}
