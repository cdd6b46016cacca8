```js
return 1
```