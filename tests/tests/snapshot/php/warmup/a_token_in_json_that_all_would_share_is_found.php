<?php
header('Content-Type: application/json');
echo json_encode(['state' => ['csrf' => kept(token(...))]]);
